import type { Plain } from './option-list.ts'

/**
 * Tells whether a value is right for certain: of one that is not, only the schema can say whether it is wrong, and how.
 * `plain`: undefined: only the schema knows.
 */
export function isPlain (plain: Plain | undefined, value: unknown): boolean {
  if (plain === undefined) return false
  if ('anyOf' in plain) return plain.anyOf.some((each) => isPlain(each, value))
  if ('const' in plain) return value === plain.const
  if ('enum' in plain) return typeof value === 'string' && plain.enum.includes(value)
  switch (plain.type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isSafeInteger(value) && isWithin(plain, Number(value))
    case 'number':
      return typeof value === 'number' && isWithin(plain, value)
    case 'string':
      return typeof value === 'string' && value.length >= (plain.minLength ?? 0) &&
        (plain.pattern === undefined || new RegExp(plain.pattern).test(value))
    case 'array':
      return Array.isArray(value) && value.every((each) => isPlain(plain.items, each))
  }
}

function isWithin ({ minimum, maximum }: { minimum: number, maximum: number }, value: number) {
  return value >= minimum && value <= maximum
}
