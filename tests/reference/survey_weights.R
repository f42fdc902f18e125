# Weighted shares and their standard errors by the R package survey (Lumley), for tests/test_weights.py.
# Rscript survey_weights.R: reads survey_weights.csv and writes survey_weights.json, beside itself.
library(survey)
people <- read.csv("survey_weights.csv", stringsAsFactors = TRUE)
designs <- list(
  weights = svydesign(ids = ~1, weights = ~weight, data = people),
  strata = svydesign(ids = ~1, strata = ~stratum, weights = ~weight, data = people),
  clusters = svydesign(ids = ~cluster, weights = ~weight, data = people),
  both = svydesign(ids = ~cluster, strata = ~stratum, weights = ~weight, data = people, nest = TRUE)
)
numbers <- function(values) paste0("[", paste(formatC(unname(values), digits = 15, format = "g"), collapse = ", "), "]")
parts <- character()
for (name in names(designs)) {
  shares <- svymean(~answer, designs[[name]])
  parts <- c(parts, sprintf(
    '"%s": {"shares": %s, "standard_errors": %s, "degrees_of_freedom": %d}',
    name, numbers(coef(shares)), numbers(SE(shares)), as.integer(degf(designs[[name]]))
  ))
}
by_sex <- svyby(~answer, ~sex, designs$weights, svymean, covmat = TRUE)
for (answer in c("no", "unsure", "yes")) {
  terms <- setNames(c(-1, 1), paste0(c("f", "m"), ":answer", answer))
  contrast <- svycontrast(by_sex, terms)
  parts <- c(parts, sprintf(
    '"m minus f, %s": {"difference": %s, "standard_error": %s}', answer, numbers(coef(contrast)), numbers(SE(contrast))
  ))
}
raked <- rake(
  designs$weights, list(~sex, ~region),
  list(data.frame(sex = c("f", "m"), Freq = c(520, 480)),
       data.frame(region = c("east", "north", "west"), Freq = c(250, 450, 300))),
  control = list(maxit = 500, epsilon = 1e-12)
)
parts <- c(parts, sprintf('"raked": %s', numbers(weights(raked))))
about <- sprintf('"made_by": "R %s, survey %s"', getRversion(), packageVersion("survey"))
writeLines(paste0("{\n  ", paste(c(about, parts), collapse = ",\n  "), "\n}"), "survey_weights.json")
