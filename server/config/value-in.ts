import { isObject } from './is-object.ts'

/** @returns undefined: there is nothing */
export function valueIn (value: unknown, path: string[]): unknown {
  return path.reduce((part, key) => isObject(part) ? part[key] : undefined, value)
}
