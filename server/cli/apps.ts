import path from 'node:path'
import { appsOf, pickApp, type ConfigFile } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { asNamed, pinPath } from '../system/working-folder.ts'
import { misuse } from './usage.ts'
import type { DataFolder } from './announced.ts'
import type { Place } from './program.ts'

/** `autostart`: it is meant where no app is named; `dataDir`: absolute */
export type App = { name: string, dependsOn: readonly string[], autostart: boolean, dataDir: string }
/** `apps`: by name, as the file lists them */
export type Apps =
  & ConfigFile
  & { apps: ReadonlyMap<string, App> }

/** These variables name one deck, which cannot be that of each app. */
const OF_ONE_DECK = Object.freeze(['CLUSTERDECK_DATA_DIR', 'CLUSTERDECK_URL'])

/**
 * Finds the apps of a config file, and the data folders of their decks. `command`: for messages.
 * @throws {DeckError} invalid-config: there are none, or what they depend on is wrong; usage
 */
export async function findApps (command: string, { config }: { config?: string }, { env, cwd }: Place): Promise<Apps> {
  const variable = OF_ONE_DECK.find((name) => env[name])
  if (variable)
    throw misuse(variable, `nothing with ${command}, where each app has its own`, JSON.stringify(env[variable]))
  const found = await readConfigFile(config ?? (env.CLUSTERDECK_CONFIG || undefined), cwd)
  const apps: Apps['apps'] = found ? appsIn(found, cwd) : new Map()
  if (!found || apps.size === 0) {
    const received = found ? `${found.file}, which has none` : 'no config file'
    throw new DeckError('invalid-config', `${command}: expected a config file with apps, received ${received}`)
  }
  return { ...found, apps }
}

/** @returns all apps of a config file, by name @throws {DeckError} invalid-config */
export function appsIn (found: ConfigFile, cwd: string): Map<string, App> {
  return new Map(
    [...appsOf(found)].map((
      [name, app]
    ) => [name, { name, ...app, dataDir: dataFolder(pickApp(found, name, cwd), cwd).folder }])
  )
}

/** The data folder that options say, or the usual one. @returns absolute */
export function dataFolder ({ shared, own, dataDir }: Pick<ReturnType<typeof pickApp>, 'shared' | 'own' | 'dataDir'>,
  cwd: string): DataFolder
{
  const file = own ?? shared
  const configured = own?.values.dataDir ?? shared?.values.dataDir
  const said = dataDir
    ? path.resolve(dataDir.folder, dataDir.value)
    : file && typeof configured === 'string'
    ? path.resolve(path.dirname(file.file), configured)
    : null
  // The master resolves links only once, so its data folder stays where it was.
  return { folder: pinPath(said ?? path.resolve(cwd, '.clusterdeck'), asNamed(cwd)), isNamed: said !== null }
}

/** `command`: for messages. Returns the same, or all apps where no names are given. @throws {DeckError} usage */
export function checkedApps (command: string, names: readonly string[], { file, apps }: Apps): readonly string[] {
  const unknown = names.find((name) => !apps.has(name))
  if (unknown !== undefined) {
    const known = [...apps.keys()].join(', ')
    const received = JSON.stringify(unknown) + didYouMean(unknown, apps.keys())
    throw misuse(command, `some of ${known}, the apps of ${file}`, received)
  }
  return names.length > 0 ? names : [...apps.keys()]
}
