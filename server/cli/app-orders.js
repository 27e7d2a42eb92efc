import path from 'node:path'

/** @typedef {Partial<import('../api/apps.js').AppOrder> & { cwd: string }} AppOrder what the host is asked to run */

/** What is meant for a command alone; the token would be kept with the order. */
const OF_COMMANDS = /^CLUSTERDECK_(TOKEN|TOKEN_FILE|URL|TIMEOUT|KEPT|KEPT_FOLDER|HOST_DIR)$/
/** Each of several apps has its own. */
const OF_ONE_APP = /^CLUSTERDECK_(APP|NAME|CONFIG)$/

/**
 * @param {Record<string, any>} flags of `start`, without those of the host @param {{ env: Record<string, string | undefined>, cwd: string }} place
 * @returns {AppOrder}
 */
export function orderOfStart ({ config, app, ...flags }, { env, cwd }) {
  return {
    ...(flags.name !== undefined && { name: flags.name }),
    ...(config !== undefined && { config: path.resolve(cwd, config) }),
    ...(app !== undefined && { app }),
    cwd,
    flags,
    env: variablesOf(env)
  }
}

/**
 * @param {import('./apps.js').App} app @param {string} file the config file that has it @param {{ env: Record<string, string | undefined>, cwd: string }} place
 * @returns {AppOrder}
 */
export function orderOfApp ({ name, dependsOn }, file, { env, cwd }) {
  return { app: name, config: file, cwd, flags: {}, env: { ...variablesOf(env, OF_ONE_APP), PWD: cwd }, dependsOn: [...dependsOn] }
}

/** @param {Record<string, string | undefined>} env @param {RegExp} [others] that are left out too @returns {Record<string, string>} */
function variablesOf (env, others) {
  /** @type {Record<string, string>} */
  const variables = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined && !OF_COMMANDS.test(name) && !others?.test(name)) variables[name] = value
  return variables
}
