/**
 * uPlot writes numbers in the language of the browser, and is of no use where nobody knows that: Chromium calls it
 * `en-US@posix` below `LANG=C.UTF-8`.
 */
try {
  Intl.getCanonicalLocales(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' })
}
