import { DeckError } from '../errors.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { digestMarks, markVariables, readVariables, type Marks, type Variables } from './environment.ts'
import { readSecrets } from './secrets.ts'
import type { AppOrder } from '../config/orders.ts'
import type { Config } from '../config/config.ts'

/**
 * The part of a configuration that concerns workers, which each deploy reads again. The values of variables stay in
 * memory.
 */
export type WorkerConfig = Pick<Config,
  'entry' | 'args' | 'execArgv' | 'runtime' | 'node' | 'appNode' | 'cwd' | 'env' | 'envFile' | 'secrets' | 'hooks'
    | 'jobs' | 'releases'>
/** The order that a launch comes from. `inherited`: the variables of its shell, for workers, hooks, jobs and git */
export type LaunchSource = { order: AppOrder | null, inherited: Record<string, string | undefined> }
/** `secrets`: those of the values that are secret */
export type LaunchSpec = LaunchSource & { config: WorkerConfig, values: Variables,
  secrets: Readonly<Record<string, string>>, marks: Marks, digest: string }

/**
 * `key`: of the digests; `cwd`: of the command that has the secrets; `known`: variables in
 * place of those of the files.
 * @throws {DeckError} invalid-config, secrets-failed
 */
export async function readLaunchSpec (config: WorkerConfig, { order, inherited }: LaunchSource,
  { key, cwd, known }: { key: string, cwd: string, known?: Record<string, string | null> }): Promise<LaunchSpec>
{
  const variables = await readVariables(known ? { env: known } : config)
  const secrets = config.secrets
    ? await readSecrets(config.secrets, { cwd, env: withoutOwnVariables({ ...inherited, ...variables }) })
    : {}
  const values = { ...variables, ...secrets }
  const marks = markVariables(values, key, inherited)
  return { order, inherited, config, values, secrets, marks, digest: digestMarks(key, marks) }
}

/** @throws {DeckError} invalid-config */
export async function reloadConfig (reload: () => Promise<WorkerConfig>): Promise<WorkerConfig> {
  try {
    return await reload()
  } catch (error) {
    // For a deploy, an unknown name in the file is as wrong as a wrong value.
    if (error instanceof DeckError && error.code === 'unknown-option')
      throw new DeckError('invalid-config', error.message, { cause: error })
    throw error
  }
}
