import { after } from 'node:test'

/** Sets variables of this process until the tests of the file, or of the suite, have ended. @param {Record<string, string>} variables */
export function setVariables (variables) {
  const before = Object.keys(variables).map((name) => /** @type {const} */ ([name, process.env[name]]))
  Object.assign(process.env, variables)
  after(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
}
