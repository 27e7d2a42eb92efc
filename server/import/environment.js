import { isObject } from '../config/is-object.js'
import { Expression, literalOf } from './literal.js'

/** @typedef {Record<string, string | null>} Variables null: the variable is not set */
/**
 * @typedef {object} Environment
 * @property {Variables} variables
 * @property {Expression | null} unset  variables of the shell that the app must not see
 * @property {string[]} dropped  names that no environment can hold
 */

const ENV_KEY = /^env_(\S+)$/

/** Lists the names that `--env` can have. @param {Record<string, unknown>} app @returns {string[]} */
export function environmentsOf (app) {
  return Object.keys(app).flatMap((key) => key !== 'env_file' && isObject(app[key]) ? ENV_KEY.exec(key)?.[1] ?? [] : [])
}

/**
 * Collects what PM2 adds to the environment of an app: env, over it the variables of the deploy, over them env_<name>. `port`
 * overrides the PORT of env.
 * @param {Record<string, unknown>} app
 * @param {{ envName?: string, deploy?: unknown }} how
 * @returns {Environment}
 */
export function environmentOf (app, { envName, deploy }) {
  const chosen = envName === undefined ? [] : [fieldOf(fieldOf(deploy, envName), 'env'), app[`env_${envName}`]]
  const [ofDeploy, ofName] = chosen
  const port = isFilled(app.port) ? { PORT: app.port } : {}
  const given = Object.entries(Object.assign({}, ...[app.env, port, ofDeploy, ofName].filter(isObject)))
  // In the text of an object, __proto__ would set the prototype.
  const kept = given.filter(([name, value]) => /^[^=\0]+$/.test(name) && name !== '__proto__' && value !== undefined && !textOf(value).includes('\0'))
  const { filter_env: filter } = app
  const hidden = typeof filter === 'string' && /^[^=\0]+$/.test(filter) && filter !== '__proto__' ? { [filter]: null } : {}
  return {
    variables: { ...hidden, ...Object.fromEntries(kept.map(([name, value]) => [name, textOf(value)])) },
    unset: Array.isArray(filter) && filter.length > 0 ? unsetAll(filter.map(String)) : null,
    dropped: given.map(([name]) => name).filter((name) => !kept.some(([each]) => each === name))
  }
}

/** PM2 leaves out each variable whose name has one of these parts. @param {string[]} parts */
function unsetAll (parts) {
  const list = literalOf(parts.filter((part) => part !== ''), '    ')
  const names = `Object.keys(process.env).filter((name) => ${list}.some((part) => name.includes(part)))`
  return new Expression(`Object.fromEntries(${names}.map((name) => [name, null]))`)
}

/** Makes a text of a value as PM2 does. @param {unknown} value */
function textOf (value) {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** @param {unknown} value @param {string} key */
function fieldOf (value, key) {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** @param {unknown} value */
function isFilled (value) {
  return (typeof value === 'number' && value > 0) || (typeof value === 'string' && value !== '')
}
