/** Tells whether it is no path, but where something is fetched from */
export function isAddress (text: string): boolean {
  return /^[^/]*:/.test(text)
}
