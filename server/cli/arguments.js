/** Commander would take the app's arguments, which follow `--`, for ours. */
export function beforeSeparator (/** @type {string[]} */ argv) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end)
}

/** @param {string[]} argv @returns {string | undefined} the first argument that is no option */
export function commandOf (argv) {
  return beforeSeparator(argv).find((word) => !word.startsWith('-'))
}
