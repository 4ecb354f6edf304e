"use strict";
(function () {
  // Theme: the reader's system decides until the button is pressed.
  var root = document.documentElement;
  document.getElementById("theme").addEventListener("click", function () {
    var system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    var now = root.getAttribute("data-theme") || system;
    root.setAttribute("data-theme", now === "dark" ? "light" : "dark");
  });

  // Tables: a click on a heading sorts, a second click reverses.
  function key(row, column) {
    var cell = row.cells[column];
    var value = cell.getAttribute("data-value");
    return value === null ? cell.textContent : Number(value);
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    if (typeof a === "number") { return -1; }
    if (typeof b === "number") { return 1; }
    return a.localeCompare(b, undefined, { numeric: true });
  }
  document.querySelectorAll("th button").forEach(function (button) {
    button.addEventListener("click", function () {
      var heading = button.parentElement;
      var table = heading.closest("table");
      var body = table.tBodies[0];
      var down = heading.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      var rows = Array.from(body.rows);
      rows.sort(function (a, b) {
        var order = compare(key(a, heading.cellIndex), key(b, heading.cellIndex));
        return down ? -order : order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });

  // Download: the file's text is already in the page.
  document.querySelectorAll("button.download").forEach(function (button) {
    button.addEventListener("click", function () {
      var source = button.closest("section").querySelector("script.csv");
      var text = JSON.parse(source.textContent);
      var url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
      var link = document.createElement("a");
      link.href = url;
      link.download = button.getAttribute("data-file");
      document.body.appendChild(link);
      link.click();
      link.remove();
      setTimeout(function () { URL.revokeObjectURL(url); }, 1000);
    });
  });
})();
