import { isObject } from './is-object.js'

/** @param {unknown} value @param {string[]} path @returns {unknown} undefined: there is nothing */
export function valueIn (value, path) {
  return path.reduce((part, key) => isObject(part) ? part[key] : undefined, value)
}
