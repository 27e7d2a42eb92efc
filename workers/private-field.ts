/**
 * Reads what Node keeps under a symbol that it shows to nobody. The caller declares what that is. `description`: of the
 * symbol. Returns undefined: this version of Node has no such symbol.
 */
export function privateField (object: object, description: string) {
  const key = Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description)
  return key && Reflect.get(object, key)
}
