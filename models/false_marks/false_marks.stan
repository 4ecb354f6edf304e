// SPM with false marks: negatives are marked too, at the rate epsilon.
// P(l = 1 | x) = s(x) t(x) + epsilon (1 - t(x)), t = inv_logit(a . x + b),
// s = inv_logit(alpha . x + beta).
// Written from the equations of card.md, independently of the Python library.
// Every density is normalised (target += ..._lpdf), so no constant is dropped.
data {
  int<lower=1> N;
  int<lower=1> p;
  matrix[N, p] X; // columns with mean 0 and standard deviation 1
  // 0 unlabelled, 1 labelled, 2 audited as y = 1 without label, 3 audited as y = 0 without label,
  // 4 labelled and audited as y = 0, 5 labelled and audited as y = 1
  array[N] int<lower=0, upper=5> kind;
  array[p] int<lower=0, upper=1> class_columns; // 0 fixes a[j] to 0
  array[p] int<lower=0, upper=1> selection_columns; // 0 fixes alpha[j] to 0
  real<lower=0> scale_a;
  real<lower=0> scale_b;
  real<lower=0> scale_alpha;
  real<lower=0> scale_beta;
  real<lower=0> epsilon_1;
  real<lower=0> epsilon_2;
}
transformed data {
  int p_t = sum(class_columns);
  int p_s = sum(selection_columns);
  array[p_t] int t_index;
  array[p_s] int s_index;
  {
    int k_t = 0;
    int k_s = 0;
    for (j in 1 : p) {
      if (class_columns[j] == 1) {
        k_t += 1;
        t_index[k_t] = j;
      }
      if (selection_columns[j] == 1) {
        k_s += 1;
        s_index[k_s] = j;
      }
    }
  }
}
parameters {
  vector[p_t] a_free;
  real b;
  vector[p_s] alpha_free;
  real beta;
  real<lower=0, upper=1> epsilon;
}
transformed parameters {
  vector[p] a = rep_vector(0, p);
  vector[p] alpha = rep_vector(0, p);
  a[t_index] = a_free;
  alpha[s_index] = alpha_free;
}
model {
  vector[N] tau = X * a + b;
  vector[N] omega = X * alpha + beta;
  vector[N] log_t = log_inv_logit(tau);
  vector[N] log_not_t = log1m_inv_logit(tau);
  vector[N] log_s = log_inv_logit(omega);
  vector[N] log_not_s = log1m_inv_logit(omega);

  target += normal_lpdf(a_free | 0, scale_a);
  target += normal_lpdf(b | 0, scale_b);
  target += normal_lpdf(alpha_free | 0, scale_alpha);
  target += normal_lpdf(beta | 0, scale_beta);
  target += beta_lpdf(epsilon | epsilon_1, epsilon_2);

  for (i in 1 : N) {
    real log_missed = log_t[i] + log_not_s[i]; // positive, not labelled
    real log_found = log_t[i] + log_s[i]; // positive, labelled
    real log_clear = log_not_t[i] + log1m(epsilon); // negative, not labelled
    real log_false = log_not_t[i] + log(epsilon); // negative, labelled
    if (kind[i] == 0) {
      target += log_sum_exp(log_clear, log_missed);
    } else if (kind[i] == 1) {
      target += log_sum_exp(log_found, log_false);
    } else if (kind[i] == 2) {
      target += log_missed;
    } else if (kind[i] == 3) {
      target += log_clear;
    } else if (kind[i] == 4) {
      target += log_false;
    } else {
      target += log_found;
    }
  }
}
generated quantities {
  real pi = mean(inv_logit(X * a + b));
}
