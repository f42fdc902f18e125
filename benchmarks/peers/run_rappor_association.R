# Run google/rappor's association EM: Rscript run_rappor_association.R CHECKOUT PROBLEM ANSWER [FAST_EM]
#
# CHECKOUT is a copy of its repository, FAST_EM its compiled analysis/cpp/fast_em.cc, if that is to do the iterations.
# PROBLEM holds `size` (users, bits, cohorts and the numbers of values), `parameters` (p, q, f), `cohorts`, and for both
# variables `bits` (users by bits) and `filters` (cohorts by values by bits). ANSWER receives `probabilities` and
# `facts`. Only its own call is timed, in seconds of the processor, its child's included. It starts at the reports, and
# all values are candidates, so that the regression which finds candidates, and the packages for it, are not needed.

arguments <- commandArgs(trailingOnly = TRUE)
checkout <- arguments[1]
problem <- arguments[2]
answer <- arguments[3]

# The functions alone: the files also load packages that only the regression needs.
functions.of <- function(path) {
  for (line in as.list(parse(file.path(checkout, path)))) {
    is.function.definition <- is.call(line) && identical(line[[1]], as.name("<-")) &&
      is.call(line[[3]]) && identical(line[[3]][[1]], as.name("function"))
    if (is.function.definition) eval(line, globalenv())
  }
}
library(parallel)
for (name in c("util.R", "association.R", "fast_em.R")) functions.of(file.path("analysis/R", name))

size <- readBin(file.path(problem, "size"), "integer", n = 5, size = 4)
users <- size[1]
bits <- size[2]
groups <- size[3]
parameters <- readBin(file.path(problem, "parameters"), "double", n = 3)
params <- list(k = bits, m = groups, p = parameters[1], q = parameters[2], f = parameters[3])
cohorts <- readBin(file.path(problem, "cohorts"), "integer", n = users, size = 4)

reports <- list()
maps <- list()
marginals <- list()
for (variable in 1:2) {
  raw <- readBin(file.path(problem, paste0("bits", variable)), "integer", n = users * bits, size = 1, signed = FALSE)
  table <- matrix(raw, nrow = bits)
  reports[[variable]] <- lapply(1:users, function(user) as.numeric(table[, user]))
  values <- size[3 + variable]
  names <- as.character(1:values)
  raw <- readBin(file.path(problem, paste0("filters", variable)), "integer", n = groups * values * bits, size = 1)
  filters <- array(raw == 1, c(bits, values, groups), list(NULL, names, NULL))
  by.cohort <- lapply(1:groups, function(cohort) array(filters[, , cohort], c(bits, values), list(NULL, names)))
  maps[[variable]] <- list(map_by_cohort = by.cohort)
  marginals[[variable]] <- list(string = names)
}

iterations <- if (length(arguments) > 3) ConstructFastEM(arguments[4], answer) else EM
processor <- function() sum(proc.time()[c("user.self", "sys.self", "user.child", "sys.child")])
start <- processor()
fit <- ComputeDistributionEM(reports, list(cohorts, cohorts), maps, ignore_other = TRUE, params = params,
                             marginals = marginals, num_cores = 1, em_iter_func = iterations)
seconds <- processor() - start

file <- file(file.path(answer, "probabilities"), "wb")
writeBin(as.double(t(fit$fit)), file)
close(file)
facts <- c(
  sprintf("seconds: %.17g", seconds),
  sprintf("iterations: %d", fit$num_em_iters),
  paste("about:", R.version.string)
)
writeLines(facts, file.path(answer, "facts"))
