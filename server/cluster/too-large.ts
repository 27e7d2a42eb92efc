import { errorCode } from '../errors.ts'

/** What Linux gives to a program in one string, its end not counted: MAX_ARG_STRLEN. */
const MAX_STRING_BYTES = 131_071

/**
 * Why the system starts no program with these arguments and variables; node says no more than E2BIG. Returns null: it
 * is another error.
 */
export function tooLarge (error: unknown, args: string[], env: Record<string, unknown>): Error | null {
  if (errorCode(error) !== 'E2BIG') return null
  const variables = Object.entries(env).filter(([, value]) => value !== undefined)
  const given = variables.map(([name, value]) => ({ what: `the variable ${name}`,
    bytes: Buffer.byteLength(`${name}=${value}`) })
  )
  const all = [...given,
    ...args.map((arg, index) => ({ what: `argument ${index + 1}`, bytes: Buffer.byteLength(arg) }))]
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0)
  const largest = all.reduce((a, b) => b.bytes > a.bytes ? b : a)
  const reason = largest.bytes > MAX_STRING_BYTES
    ? `${largest.what} has ${formatCount(largest.bytes)} bytes, and the system gives a program ${
      formatCount(MAX_STRING_BYTES)
    } at most in one`
    : `its arguments and variables have ${
      formatCount(total)
    } bytes together, more than the system gives a program (a fourth of ulimit -s); the largest is ${largest.what}`
  return Object.assign(new Error(`${reason}: put it into a file that the app reads`, { cause: error }), {
    code: 'E2BIG'
  })
}

function formatCount (count: number) {
  return count.toLocaleString('en-US')
}
