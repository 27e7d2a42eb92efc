/** @typedef {import('./option-list.js').Plain} Plain */

/**
 * Tells whether a value is right for certain: of one that is not, only the schema can say whether it is wrong, and how.
 * @param {Plain | undefined} plain  undefined: only the schema knows @param {unknown} value
 * @returns {boolean}
 */
export function isPlain (plain, value) {
  if (plain === undefined) return false
  if ('anyOf' in plain) return plain.anyOf.some((each) => isPlain(each, value))
  if ('const' in plain) return value === plain.const
  if ('enum' in plain) return typeof value === 'string' && plain.enum.includes(value)
  switch (plain.type) {
    case 'boolean': return typeof value === 'boolean'
    case 'integer': return Number.isSafeInteger(value) && isWithin(plain, Number(value))
    case 'number': return typeof value === 'number' && isWithin(plain, value)
    case 'string': return typeof value === 'string' && value.length >= (plain.minLength ?? 0) && (plain.pattern === undefined || new RegExp(plain.pattern).test(value))
    case 'array': return Array.isArray(value) && value.every((each) => isPlain(plain.items, each))
  }
}

/** @param {{ minimum: number, maximum: number }} range @param {number} value */
function isWithin ({ minimum, maximum }, value) {
  return value >= minimum && value <= maximum
}
