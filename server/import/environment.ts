import { isObject } from '../config/is-object.ts'
import { Expression, literalOf } from './literal.ts'

/** null: the variable is not set */
type Variables = Record<string, string | null>
type Environment = {
  variables: Variables,
  /** variables of the shell that the app must not see */
  unset: Expression | null,
  /** names that no environment can hold */
  dropped: string[]
}

const ENV_KEY = /^env_(\S+)$/

/** Lists the names that `--env` can have. */
export function environmentsOf (app: Record<string, unknown>): string[] {
  return Object.keys(app).flatMap((key) => key !== 'env_file' && isObject(app[key]) ? ENV_KEY.exec(key)?.[1] ?? [] : [])
}

/**
 * Collects what PM2 adds to the environment of an app: env, over it the variables of the deploy, over them env_<name>.
 * `port` overrides the PORT of env.
 */
export function environmentOf (app: Record<string, unknown>,
  { envName, deploy }: { envName?: string, deploy?: unknown }): Environment
{
  const chosen = envName === undefined ? [] : [fieldOf(fieldOf(deploy, envName), 'env'), app[`env_${envName}`]]
  const [ofDeploy, ofName] = chosen
  const port = isFilled(app.port) ? { PORT: app.port } : {}
  const given = Object.entries(Object.assign({}, ...[app.env, port, ofDeploy, ofName].filter(isObject)))
  // In the text of an object, __proto__ would set the prototype.
  const kept = given.filter(([name, value]) =>
    /^[^=\0]+$/.test(name) && name !== '__proto__' && value !== undefined && !textOf(value).includes('\0')
  )
  const { filter_env: filter } = app
  const hidden = typeof filter === 'string' && /^[^=\0]+$/.test(filter) && filter !== '__proto__'
    ? { [filter]: null }
    : {}
  return { variables: { ...hidden, ...Object.fromEntries(kept.map(([name, value]) => [name, textOf(value)])) },
    unset: Array.isArray(filter) && filter.length > 0 ? unsetAll(filter.map(String)) : null,
    dropped: given.map(([name]) => name).filter((name) => !kept.some(([each]) => each === name)) }
}

/** PM2 leaves out each variable whose name has one of these parts. */
function unsetAll (parts: string[]) {
  const list = literalOf(parts.filter((part) => part !== ''), '    ')
  const names = `Object.keys(process.env).filter((name) => ${list}.some((part) => name.includes(part)))`
  return new Expression(`Object.fromEntries(${names}.map((name) => [name, null]))`)
}

/** Makes a text of a value as PM2 does. */
function textOf (value: unknown) {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function fieldOf (value: unknown, key: string) {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

function isFilled (value: unknown) {
  return (typeof value === 'number' && value > 0) || (typeof value === 'string' && value !== '')
}
