import { DeckError } from '../errors.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { digestMarks, markVariables, readVariables } from './environment.js'
import { readSecrets } from './secrets.js'

/**
 * The part of a configuration that concerns workers, which each deploy reads again. The values of variables stay in memory.
 * @typedef {Pick<import('../config/config.js').Config, 'entry' | 'args' | 'execArgv' | 'runtime' | 'cwd' | 'env' | 'envFile' | 'secrets' | 'hooks' | 'jobs' | 'releases'>} WorkerConfig
 * @typedef {{ config: WorkerConfig, values: import('./environment.js').Variables, secrets: Readonly<Record<string, string>>, marks: import('./environment.js').Marks, digest: string }} LaunchSpec  `secrets`: those of the values that are secret
 */

/**
 * @param {WorkerConfig} config
 * @param {{ key: string, inherited: Record<string, string | undefined>, cwd: string }} place  `key`: of the digests; `inherited`: by the workers;
 *   `cwd`: of the command that has the secrets
 * @returns {Promise<LaunchSpec>}
 * @throws {DeckError} invalid-config, secrets-failed
 */
export async function readLaunchSpec (config, { key, inherited, cwd }) {
  const variables = await readVariables(config)
  const secrets = config.secrets ? await readSecrets(config.secrets, { cwd, env: withoutOwnVariables({ ...inherited, ...variables }) }) : {}
  const values = { ...variables, ...secrets }
  const marks = markVariables(values, key, inherited)
  return { config, values, secrets, marks, digest: digestMarks(key, marks) }
}

/** @param {() => Promise<WorkerConfig>} reload @returns {Promise<WorkerConfig>} @throws {DeckError} invalid-config */
export async function reloadConfig (reload) {
  try {
    return await reload()
  } catch (error) {
    // For a deploy, an unknown name in the file is as wrong as a wrong value.
    if (error instanceof DeckError && error.code === 'unknown-option') throw new DeckError('invalid-config', error.message, { cause: error })
    throw error
  }
}
