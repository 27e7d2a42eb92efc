import { isObject } from './is-object.ts'

/** Undefined: there is nothing */
export function valueIn (value: unknown, path: string[]): unknown {
  return path.reduce((part, key) => isObject(part) ? part[key] : undefined, value)
}
