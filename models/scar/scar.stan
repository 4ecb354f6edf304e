// SCAR: every positive is labelled with the same probability c.
// P(l = 1 | x) = c t(x), t(x) = inv_logit(a . x + b).
// Written from the equations of card.md, independently of the Python library.
// Every density is normalised (target += ..._lpdf), so no constant is dropped.
data {
  int<lower=1> N;
  int<lower=1> p;
  matrix[N, p] X; // columns with mean 0 and standard deviation 1
  // 0 unlabelled, 1 labelled, 2 audited as y = 1 without label, 3 audited as y = 0
  array[N] int<lower=0, upper=3> kind;
  array[p] int<lower=0, upper=1> class_columns; // 0 fixes a[j] to 0
  real<lower=0> scale_a;
  real<lower=0> scale_b;
  real<lower=0> c_1; // c ~ Beta(c_1, c_2)
  real<lower=0> c_2;
}
transformed data {
  int p_t = sum(class_columns);
  array[p_t] int t_index;
  {
    int k = 0;
    for (j in 1 : p) {
      if (class_columns[j] == 1) {
        k += 1;
        t_index[k] = j;
      }
    }
  }
}
parameters {
  vector[p_t] a_free;
  real b;
  real<lower=0, upper=1> c;
}
transformed parameters {
  vector[p] a = rep_vector(0, p);
  a[t_index] = a_free;
}
model {
  vector[N] tau = X * a + b;
  vector[N] log_t = log_inv_logit(tau);
  vector[N] log_not_t = log1m_inv_logit(tau);

  target += normal_lpdf(a_free | 0, scale_a);
  target += normal_lpdf(b | 0, scale_b);
  target += beta_lpdf(c | c_1, c_2);

  for (i in 1 : N) {
    real log_missed = log_t[i] + log1m(c); // positive, not labelled
    if (kind[i] == 0) {
      target += log_sum_exp(log_not_t[i], log_missed);
    } else if (kind[i] == 1) {
      target += log_t[i] + log(c);
    } else if (kind[i] == 2) {
      target += log_missed;
    } else {
      target += log_not_t[i];
    }
  }
}
generated quantities {
  real pi = mean(inv_logit(X * a + b));
}
