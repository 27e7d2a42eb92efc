import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { runningDecks, type RunningDeck } from '../system/running-decks.ts'
import { decksTable, deckView } from './decks-table.ts'
import { readDeckStatus, type Place } from './deck-status.ts'
import { appsOfHost, callHost, findHost, isOpen } from './host.ts'
import { jsonText } from './output.ts'
import { BRING_BACK, rememberedApps, type RememberedApp } from './remembered.ts'
import type { Terminal } from './program.ts'
import type { Master } from './find-master.ts'
import type { Notice } from '../api/notices.ts'
import type { AppView } from '../api/apps.ts'

/**
 * Lists the apps of the host of this user, also those that do not run, or that it remembers while it does not run
 * itself; and the decks that run without a host.
 * @throws {DeckError} runtime-dir-unusable, data-dir-unusable
 */
export async function lsCommand ({ json }: { json?: true }, { stdout, stderr, env, cwd }: Terminal) {
  const place = { env, cwd }
  const decks = runningDecks(env)
  const apps = await appsOfHost(env).catch((error) => {
    if (!(error instanceof DeckError)) throw error
    // Those of its apps that run are in the list of running decks.
    stderr.write(`clusterdeck: the host does not tell of its apps: ${oneLine(error.message)}\n`)
    return []
  })
  const host = apps.length === 0 ? null : findHost(env)
  const inHost = new Set(apps.map(({ dataDir }) => dataDir))
  const remembered = rememberedApps(env).filter(({ dataDir }) => !decks.some((deck) => deck.dataDir === dataDir))
  const rows = await Promise.all([
    ...apps.map((app) => rowOfApp(app, decks.find(({ dataDir }) => dataDir === app.dataDir), host, place)),
    ...remembered.map(rowOfRemembered),
    ...decks.filter(({ dataDir }) => !inHost.has(dataDir)).map((deck) => rowOfDeck(deck, place))
  ])
  rows.sort((one, other) => one.name < other.name ? -1 : one.name > other.name ? 1 : 0)
  if (json) stdout.write(`${jsonText(rows.map(({ facts, ...row }) => ({ ...deckView(row), ...facts })))}\n`)
  else stdout.write(
      `${
        rows.length === 0
          ? 'no deck of this user runs on this machine'
          : decksTable(rows, { now: Date.now(), hasFolders: true })
      }\n`
    )
  if (host && !json) { for (const notice of await noticesOf(host, env)) stderr.write(`clusterdeck: ${notice}\n`) }
  if (remembered.length > 0) stderr.write(`clusterdeck: ${BRING_BACK}\n`)
}

/** What has gone wrong with the host itself. */
async function noticesOf (host: Master, env: Terminal['env']) {
  const { items } = await callHost(host, { env }).get<{ items: Notice[] }>('/host/notices').catch(() => {
    // A host of an older version has none, and one that does not answer has been told of.
    return { items: [] }
  })
  return items.map(({ id, message, at }) =>
    oneLine(`${message} (${at}; once you know: clusterdeck acknowledge ${id} --host)`)
  )
}

async function rowOfDeck (deck: RunningDeck, place: Place) {
  const { name, dataDir, adminUrl, entry, cwd, configFile, version, startedAt, master, keeper } = deck
  const facts = { entry, cwd, configFile, version, startedAt, pid: master.pid, keeperPid: keeper?.pid ?? null,
    state: 'running', reason: null, isInHost: false }
  return { name, dataDir, adminUrl, answer: await readDeckStatus(dataDir, place), facts }
}

function rowOfRemembered ({ name, dataDir, state, cwd, configFile }: RememberedApp) {
  const facts = { entry: null, cwd, configFile, version: null, startedAt: null, pid: null, keeperPid: null, state,
    reason: null, isInHost: true }
  return { name, dataDir, adminUrl: null, answer: null, state, facts }
}

async function rowOfApp (app: AppView, deck: RunningDeck | undefined, host: { url: string } | null, place: Place) {
  const { name, dataDir, entry, cwd, configFile, startedAt, state, reason, nextTryAt } = app
  const facts = { entry, cwd, configFile, version: deck?.version ?? null, startedAt, pid: deck?.master.pid ?? null,
    keeperPid: deck?.keeper?.pid ?? null, state, reason, nextTryAt, isInHost: true }
  const answer = isOpen(app) && dataDir !== null ? await readDeckStatus(dataDir, place) : null
  return { name, dataDir, adminUrl: host && `${host.url}${app.path}`, answer, state, reason, nextTryAt, facts }
}
