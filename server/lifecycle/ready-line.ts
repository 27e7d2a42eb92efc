const EXPRESSION = /^\/(.+)\/([imsu]*)$/s

/**
 * `wanted`: of option ready.log: a text that the line has in it, or `/a regular expression/`.
 * @throws SyntaxError  it is no regular expression
 */
export function readyLineOf (wanted: string): (line: string) => boolean {
  const [, source, flags] = EXPRESSION.exec(wanted) ?? []
  if (source === undefined) return (line) => line.includes(wanted)
  const expression = new RegExp(source, flags)
  return (line) => expression.test(line)
}
