"""The pictures of growth read what the benchmark of scale stores."""

from benchmarks.growth import PANELS, curves


def test_each_panel_takes_the_tables_in_which_one_size_grows():
    figures = {
        "1000 x 20: spm, CPU seconds": 1.0,
        "100 x 20: spm, CPU seconds": 0.5,
        "100 x 20: spm, default fit / LogisticRegression": 9.0,
        "10000 x 5: spm, CPU seconds": 0.1,
        "10000 x 20: spm, CPU seconds": 0.2,
        "5000 x 5, 2 annotators: spm, CPU seconds": 0.3,
        "5000 x 5, 10 annotators: spm, CPU seconds": 0.6,
    }
    rows, columns, annotators = (curves(figures, grows, fixed) for _, grows, fixed in PANELS)
    assert rows == {"spm": [(100, 0.5), (1000, 1.0), (10_000, 0.2)]}
    assert columns == {"spm": [(5, 0.1), (20, 0.2)]}
    assert annotators == {"spm": [(2, 0.3), (10, 0.6)]}
