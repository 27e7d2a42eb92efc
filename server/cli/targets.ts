import { appsOf } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { runningDecks } from '../system/running-decks.ts'
import { dataDirOfApp } from './find-master.ts'
import { appsOfHost } from './host.ts'
import { forAll } from './pm2-words.ts'
import { rememberedApps, withoutHost } from './remembered.ts'
import type { AppView } from '../api/apps.ts'
import type { Place } from './deck-status.ts'

/** An app that a command is for. */
export type Target = {
  name: string,
  /** absolute; null: its configuration cannot be read */
  dataDir: string | null,
  /** as the host has it; null: it is no app of the host */
  view: AppView | null,
  /** by which its master is found */
  place: { app: string } | { dataDir: string } | { name: string }
}

/**
 * Finds apps by name: those of the config file in the working folder first, then those of the host, then decks in the
 * foreground. `command`: for messages; `takesAll`: it has `--all`.
 * @returns as the names
 * @throws {DeckError} usage: some name is of none, or of several; nothing was done then
 */
export async function findTargets (command: string, names: readonly string[], { env, cwd }: Place,
  { takesAll = false } = {}): Promise<Target[]>
{
  let failure: unknown = null
  const views = await appsOfHost(env).catch((error) => {
    failure = error
    return []
  })
  const apps = [...await appsOfFolder(views, { env, cwd }), ...views.map(toTarget)]
  const decks = decksOutside(views, env)
  return names.map((name) => {
    const app = apps.find((each) => each.name === name)
    const [deck, ...same] = decks.filter((each) => each.name === name)
    const remembered = app || deck ? undefined : rememberedApps(env).find((each) => each.name === name)
    if (!app && !deck)
      throw failure ??
        (remembered ? withoutHost(remembered) : unknownApp(command, name, { known: [...apps, ...decks], takesAll }))
    if (!app && same.length > 0) throw ambiguousName(command, [deck, ...same])
    return app ?? deck
  })
}

/** @returns of the apps of the host, by name */
export async function allTargets (env: Place['env'], isWanted: (app: AppView) => boolean): Promise<Target[]> {
  return (await appsOfHost(env)).filter(isWanted).map(toTarget)
}

function toTarget (view: AppView): Target {
  const { name, dataDir } = view
  return { name, dataDir, view, place: dataDir === null ? { name } : { dataDir } }
}

async function appsOfFolder (views: AppView[], { env, cwd }: Place): Promise<Target[]> {
  const file = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  return [...file ? appsOf(file).keys() : []].map((name) => {
    const dataDir = dataDirOfApp(file, name, cwd)
    return { name, dataDir, view: views.find((view) => view.dataDir === dataDir) ?? null, place: { app: name } }
  })
}

function decksOutside (views: AppView[], env: Place['env']): Target[] {
  const inside = new Set(views.map(({ dataDir }) => dataDir))
  return runningDecks(env).filter(({ dataDir }) => !inside.has(dataDir)).map(({ name, dataDir }) => ({ name, dataDir,
    view: null, place: { dataDir } })
  )
}

export function unknownApp (command: string, name: string,
  { known, takesAll }: { known: readonly Pick<Target, 'name'>[], takesAll: boolean })
{
  const names = [...new Set(known.map((each) => each.name))].sort()
  const expected = names.length === 0 ? 'an app, and there is none' : `some of ${names.join(', ')}`
  return new DeckError('usage',
    `${command}: expected ${expected}, received ${JSON.stringify(name)}${
      (takesAll && forAll(command, name)) || didYouMean(name, names)
    }`)
}

function ambiguousName (command: string, same: Target[]) {
  const folders = same.map(({ dataDir }) => dataDir).join(', ')
  return new DeckError('usage',
    `${command}: expected the name of one deck, received ${
      JSON.stringify(same[0].name)
    }, which ${same.length} decks have; choose one by --data-dir: ${folders}`)
}
