import path from 'node:path'
import { circleOf } from './app-order.ts'
import { invalid } from './invalid.ts'
import { isObject } from './is-object.ts'
import { didYouMean } from './nearest.ts'

const DATA_DIR = '.clusterdeck'
/** The name of a deck is part of a path, and people type it. */
export const DECK_NAME = /^[A-Za-z\d][\w.-]{0,59}$/

export type ConfigFile = { file: string, values: Record<string, unknown> }
type AppOptions =
  & Record<string, unknown>
  & { dependsOn?: string[], autostart?: boolean }

type Picked = {
  name: string | null,
  shared: ConfigFile | null,
  /** its options count more than the shared ones */
  own: ConfigFile | null,
  /** of this app, below the shared data folder; null: the options set it */
  dataDir: { value: string, folder: string } | null
}

/**
 * Picks one of the apps of a config file, `apps: { shop: { … }, mail: { … } }`. Options beside `apps` hold for all of
 * them.
 * @throws {DeckError} invalid-config
 */
export function pickApp (found: ConfigFile | null, name: string | undefined, cwd: string): Picked {
  const { apps, ...rest } = found?.values ?? {}
  if (!found || apps === undefined) {
    const place = found ? `${found.file}, which has none` : 'no config file'
    if (name !== undefined) throw invalid('app', 'a config file with apps', `${JSON.stringify(name)} and ${place}`)
    return { name: null, shared: found, own: null, dataDir: null }
  }
  const { file } = found
  const known = checkedApps(apps, file)
  const wanted = name ?? (known.size === 1 ? [...known.keys()][0] : undefined)
  const own = wanted === undefined ? undefined : known.get(wanted)
  if (wanted === undefined || own === undefined) {
    const received = wanted === undefined ? 'none' : JSON.stringify(wanted) + didYouMean(wanted, known.keys())
    throw invalid('app', `one of ${[...known.keys()].join(', ')} (option --app), the apps of ${file}`, received)
  }
  const { dependsOn, autostart, ...values } = own
  const dataDir = Object.hasOwn(own, 'dataDir') ? null : folderOf(wanted, rest.dataDir, { file, cwd })
  return { name: wanted, shared: { file, values: rest }, own: { file, values }, dataDir }
}

/**
 * Lists all apps of a config file.
 * @returns by name, in the order of the file; `autostart`: it is meant where no app is named
 * @throws {DeckError} invalid-config
 */
export function appsOf (
  { file, values: { apps } }: ConfigFile
): Map<string, { dependsOn: readonly string[], autostart: boolean }> {
  return new Map(
    apps === undefined
      ? []
      : [...checkedApps(apps, file)].map((
        [name, { dependsOn = [], autostart = true }]
      ) => [name, { dependsOn, autostart }])
  )
}

/** `dataDir`: the shared one */
function folderOf (name: string, dataDir: unknown, { file, cwd }: { file: string, cwd: string }) {
  if (dataDir === undefined) return { value: path.join(DATA_DIR, name), folder: cwd }
  return typeof dataDir === 'string' ? { value: path.join(dataDir, name), folder: path.dirname(file) } : null
}

function checkedApps (apps: unknown, file: string): Map<string, AppOptions> {
  if (!isObject(apps) || Object.keys(apps).length === 0) {
    throw invalid(`apps in ${file}`, 'an object of apps, { shop: { entry: "shop.js" } }', JSON.stringify(apps))
  }
  const names = Object.keys(apps)
  const known: Map<string, AppOptions> = new Map()
  for (const [name, options] of Object.entries(apps)) {
    if (!DECK_NAME.test(name))
      throw invalid(`apps in ${file}`, 'a name of letters, digits, ".", "_" and "-", at most 60',
        JSON.stringify(name.slice(0, 100)))
    if (!isObject(options)) throw invalid(`apps.${name} in ${file}`, 'an object of options', JSON.stringify(options))
    const { dependsOn, autostart } = options
    if (autostart !== undefined && typeof autostart !== 'boolean')
      throw invalid(`apps.${name}.autostart in ${file}`, 'true or false', JSON.stringify(autostart))
    known.set(name, { ...options, autostart,
      dependsOn: dependsOn === undefined ? undefined : checkedNames(name, dependsOn, { names, file }) })
  }
  const circle = circleOf(new Map([...known].map(([name, { dependsOn = [] }]) => [name, { dependsOn }])))
  if (circle) throw invalid(`apps.${circle[0]}.dependsOn in ${file}`, 'no circle', circle.join(' → '))
  return known
}

function checkedNames (app: string, dependsOn: unknown, { names, file }: { names: string[], file: string }): string[] {
  const source = `apps.${app}.dependsOn in ${file}`
  if (!Array.isArray(dependsOn) || dependsOn.some((each) => typeof each !== 'string')) {
    throw invalid(source, 'a list of names of apps', JSON.stringify(dependsOn))
  }
  for (const each of dependsOn) {
    if (each === app) throw invalid(source, 'other apps', `"${app}" itself`)
    if (!names.includes(each))
      throw invalid(source, `some of ${names.join(', ')}`, `${JSON.stringify(each)}${didYouMean(each, names)}`)
  }
  return dependsOn
}
