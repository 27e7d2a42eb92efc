/** Commander would take the app's arguments, which follow `--`, for ours. */
export function beforeSeparator (argv: string[]) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end)
}

/** @returns the first argument that is no option */
export function commandOf (argv: string[]): string | undefined {
  return beforeSeparator(argv).find((word) => !word.startsWith('-'))
}
