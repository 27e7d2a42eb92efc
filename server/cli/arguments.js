/** What stands before `--`: commander would take the app's arguments for ours. */
export function beforeSeparator (/** @type {string[]} */ argv) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end)
}

/** @param {string[]} argv @returns {string | undefined} the first word that is no option */
export function commandOf (argv) {
  return beforeSeparator(argv).find((word) => !word.startsWith('-'))
}
