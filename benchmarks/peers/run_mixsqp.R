# Run mixsqp on a problem: Rscript run_mixsqp.R PROBLEM ANSWER MODE REPEATS SECONDS
#
# It takes a row for each pattern that was sent, a column for each value, and the counts as weights. The folders are
# described in exchange.py. Only the call itself is timed.

suppressPackageStartupMessages(library(mixsqp))

arguments <- commandArgs(trailingOnly = TRUE)
problem <- arguments[1]
answer <- arguments[2]
mode <- arguments[3]
repeats <- as.integer(arguments[4])
quick <- 2

size <- readBin(file.path(problem, "size"), "integer", n = 2, size = 4)
likelihood <- matrix(readBin(file.path(problem, "matrix"), "double", n = prod(size)), nrow = size[2], ncol = size[1])
counts <- readBin(file.path(problem, "counts"), "double", n = size[2])
likelihood <- likelihood[counts > 0, , drop = FALSE]
counts <- counts[counts > 0]

# No approximation of the matrix, nothing added inside the logarithm, a strict rule.
strict <- list(tol.svd = 0, eps = 0, convtol.sqp = 1e-12)
control <- switch(mode,
  "defaults" = list(),
  "strict" = c(strict, list(maxiter.activeset = 100)),
  "strict-em" = c(strict, list(maxiter.activeset = size[1] + 1, zero.threshold.solution = 1e-14, numiter.em = 1000))
)
settings <- switch(mode,
  "defaults" = "defaults",
  "strict" = "strict (no svd, eps 0, tolerance 1e-12, 100 active-set steps)",
  "strict-em" = "strict, all active-set steps, 1,000 EM steps first"
)
control$verbose <- FALSE

set.seed(1) # the approximation of the matrix starts at random
times <- numeric()
repeat {
  start <- proc.time()[["elapsed"]]
  fit <- suppressWarnings(mixsqp(likelihood, counts, control = control))
  times <- c(times, proc.time()[["elapsed"]] - start)
  if (times[1] > quick || length(times) > repeats) break
}
median.time <- if (length(times) > 1) median(times[-1]) else times

file <- file(file.path(answer, "probabilities"), "wb")
writeBin(as.double(fit$x), file)
close(file)
facts <- c(
  sprintf("seconds: %.17g", median.time),
  sprintf("first: %.17g", times[1]),
  paste("settings:", settings),
  paste0("verdict: ", fit$status)
)
writeLines(facts, file.path(answer, "facts"))
