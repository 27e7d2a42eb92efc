class BadParameter extends Error {}

/**
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {{ fallback: number, max: number }} limits a whole number from 0 to `max`
 * @returns {number}
 */
export function numberParam (query, name, { fallback, max }) {
  const text = query.get(name)
  if (text === null) return fallback
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
  if (value <= max) return value
  throw new BadParameter(`${name}: expected an integer from 0 to ${max}, received ${JSON.stringify(text.slice(0, 50))}`)
}

/**
 * @param {unknown} error
 * @returns {{ error: string, message: string } | null} the body of a 400, or null if it is no parameter that is wrong
 */
export function badParameter (error) {
  return error instanceof BadParameter ? { error: 'bad-parameter', message: error.message } : null
}
