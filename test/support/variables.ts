import { after } from 'node:test'

/** Sets variables of this process until the tests of the file, or of the suite, have ended. */
export function setVariables (variables: Record<string, string>) {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
  Object.assign(process.env, variables)
  after(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
}
