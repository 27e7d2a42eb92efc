import { findConfigFile, loadConfig, type Config } from '../config/config.ts'
import type { AppOrder } from '../config/orders.ts'
import type { ConfigFile } from '../config/apps.ts'

/**
 * Reads the config file of an order. A JavaScript one is run in a process of its own, which takes as long as an app
 * needs to boot. Returns null: it has none.
 * @throws {import('../errors.ts').DeckError} invalid-config
 */
export async function readFileOf ({ config, env, cwd }: AppOrder): Promise<ConfigFile | null> {
  return await findConfigFile({ config, env, cwd, isAgain: true, isApart: true })
}

/**
 * The configuration that an order means, in the folder and with the variables of the shell that it is from.
 * `file`: as it has just been read; `launchIn`: the folder in which a script is looked up.
 * @throws {import('../errors.ts').DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function readConfigOf ({ flags, config, app, env, cwd }: AppOrder,
  { name, file, launchIn }: { name?: string, file?: ConfigFile | null, launchIn?: string } = {}): Promise<Config>
{
  const named = name === undefined ? {} : { name }
  return await loadConfig({ flags: { ...flags, ...named, config, app }, env, cwd, isAgain: true, isApart: true,
    launchIn, found: file })
}
