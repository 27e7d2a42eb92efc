import { DeckError } from '../errors.js'
import { digestMarks, markVariables, readVariables } from './environment.js'

/**
 * The part of a configuration that concerns workers, which each deploy reads again. The values of variables stay in memory.
 * @typedef {Pick<import('../config/config.js').Config, 'entry' | 'args' | 'execArgv' | 'cwd' | 'env' | 'envFile' | 'hooks' | 'jobs' | 'releases'>} WorkerConfig
 * @typedef {{ config: WorkerConfig, values: import('./environment.js').Variables, marks: import('./environment.js').Marks, digest: string }} LaunchSpec
 */

/**
 * @param {WorkerConfig} config @param {string} key of the digests
 * @param {Record<string, string | undefined>} inherited  by the workers
 * @returns {Promise<LaunchSpec>}
 * @throws {DeckError} invalid-config
 */
export async function readLaunchSpec (config, key, inherited) {
  const values = await readVariables(config)
  const marks = markVariables(values, key, inherited)
  return { config, values, marks, digest: digestMarks(key, marks) }
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
