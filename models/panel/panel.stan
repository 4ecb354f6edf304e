// Panel: several annotators of the same rows, each a logistic factor, partially pooled.
// P(labels | x) = t prod_j s_j^l (1 - s_j)^(1 - l) + (1 - t) [nobody labelled], over those shown,
// t = inv_logit(a . x + b), s_j = inv_logit(alpha_j . x + beta_j).
// Written from the equations of card.md, independently of the Python library.
// Every density is normalised (target += ..._lpdf), so no constant is dropped.
data {
  int<lower=1> N;
  int<lower=1> p;
  int<lower=2> J;
  matrix[N, p] X; // columns with mean 0 and standard deviation 1
  array[N, J] int<lower=-1, upper=1> L; // 1 labelled, 0 seen and not labelled, -1 not shown
  array[N] int<lower=-1, upper=1> y; // audited class, -1 where unknown
  array[p] int<lower=0, upper=1> class_columns; // 0 fixes a[k] to 0
  array[p] int<lower=0, upper=1> selection_columns; // 0 fixes alpha[j, k] to 0
  real<lower=0> scale_a;
  real<lower=0> scale_b;
  real<lower=0> scale_alpha_mean;
  real<lower=0> scale_beta_mean;
  real<lower=0> scale_sigma_alpha;
  real<lower=0> scale_sigma_beta;
}
transformed data {
  int p_t = sum(class_columns);
  int p_s = sum(selection_columns);
  array[p_t] int t_index;
  array[p_s] int s_index;
  {
    int k_t = 0;
    int k_s = 0;
    for (k in 1 : p) {
      if (class_columns[k] == 1) {
        k_t += 1;
        t_index[k_t] = k;
      }
      if (selection_columns[k] == 1) {
        k_s += 1;
        s_index[k_s] = k;
      }
    }
  }
}
parameters {
  vector[p_t] a_free;
  real b;
  vector[p_s] alpha_mean_free;
  real beta_mean;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_beta;
  matrix[J, p_s] z_alpha;
  vector[J] z_beta;
}
transformed parameters {
  vector[p] a = rep_vector(0, p);
  vector[p] alpha_mean = rep_vector(0, p);
  matrix[J, p] alpha = rep_matrix(0, J, p);
  vector[J] beta = beta_mean + sigma_beta * z_beta;
  a[t_index] = a_free;
  alpha_mean[s_index] = alpha_mean_free;
  for (j in 1 : J) {
    alpha[j, s_index] = alpha_mean_free' + sigma_alpha * z_alpha[j];
  }
}
model {
  vector[N] tau = X * a + b;
  matrix[N, J] omega = X * alpha' + rep_matrix(beta', N);

  target += normal_lpdf(a_free | 0, scale_a);
  target += normal_lpdf(b | 0, scale_b);
  target += normal_lpdf(alpha_mean_free | 0, scale_alpha_mean);
  target += normal_lpdf(beta_mean | 0, scale_beta_mean);
  // half-normal: twice the normal density on the positive half
  target += normal_lpdf(sigma_alpha | 0, scale_sigma_alpha) + log2();
  target += normal_lpdf(sigma_beta | 0, scale_sigma_beta) + log2();
  target += std_normal_lpdf(to_vector(z_alpha));
  target += std_normal_lpdf(z_beta);

  for (i in 1 : N) {
    real log_positive = log_inv_logit(tau[i]); // positive, with these labels
    int labelled = 0;
    for (j in 1 : J) {
      if (L[i, j] == 1) {
        log_positive += log_inv_logit(omega[i, j]);
        labelled = 1;
      } else if (L[i, j] == 0) {
        log_positive += log1m_inv_logit(omega[i, j]);
      }
    }
    if (y[i] == 0) {
      target += log1m_inv_logit(tau[i]);
    } else if (y[i] == 1 || labelled == 1) {
      target += log_positive;
    } else {
      target += log_sum_exp(log1m_inv_logit(tau[i]), log_positive);
    }
  }
}
generated quantities {
  real pi = mean(inv_logit(X * a + b));
}
