import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.ts'
import { disableText, unitOf } from '../systemd/unit-of.ts'
import { createApiClient, nullOn, waitUntil, type ApiClient } from './api-client.ts'
import { createTools } from './context.ts'
import { findMaster, findMasterAt, withoutPlace, type Master } from './find-master.ts'
import { meetHost } from './host-start.ts'
import { showApps } from './ls.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { Terminal } from './program.ts'
import type { AdoptionView as Adoption, NewAdoption } from '../host/api.ts'
import type { Status } from '../api/cluster.ts'

type AdoptOptions = { app?: string, name?: string, wait?: boolean, timeout?: string, workers?: string, grace?: string,
  json?: true }

/**
 * Moves a running deck into the host of this user, which is started if there is none.
 * @param folder of the app, or its data folder; default: the working folder
 * @throws {DeckError} usage, no-master, not-possible, name-taken, start-failed, timed-out; then the deck goes on as
 * before
 */
export async function adoptCommand (folder: string | undefined, options: AdoptOptions, terminal: Terminal) {
  const { env } = terminal
  const other = (['workers', 'grace'] as const).find((name) => options[name] !== undefined)
  if (other) throw misuse(`--${other}`, 'with --pm2, --port or --pid', 'alone')
  const deadline = timeoutOf(options, env)
  const master = await findDeck(path.resolve(terminal.cwd, folder ?? '.'), options, terminal)
  // Once the deck has moved, its processes are gone, and nothing tells which unit they were of.
  const { pid } = master.recipient?.processes.at(-1) ?? { pid: 0 }
  const unit = unitOf(pid)
  const deck = createApiClient(master, { ...deadline, findAgain: () => findMasterAt(master.dataDir, terminal) })
  await deck.get('/status')
  const { host, url } = await meetHost(deadline, terminal)
  const { id, name } = await send(deck, host, options.name)
  const { answer, tell } = createTools({ json: options.json }, terminal)
  if (unit) tell(disableText(unit))
  if (options.wait === false)
    return answer(await host.get(`/host/adoptions/${id}`), () => `${name} moves into the host`)
  tell(`${name} moves into the host: its new workers start beside the old ones`)
  await untilMoved(host, id)
  await showApps([name], { host, url, terminal, answer })
}

/**
 * @returns of the deck
 * @throws {DeckError} no-master, not-possible, invalid-config
 */
async function findDeck (folder: string, { app }: AdoptOptions, { env }: Terminal): Promise<Master> {
  const isData = existsSync(path.join(folder, 'master.json'))
  const master = await findMaster(isData ? { dataDir: folder } : { app }, { env: withoutPlace(env), cwd: folder })
  if (master.app !== null)
    throw new DeckError('not-possible',
      `adopt: expected a deck of its own, received ${master.dataDir}, which ${master.app.name} of the host has`)
  return master
}

/**
 * Tells the host of the deck and the deck of the host, once the deck is not starting any more.
 * @returns `name`: what the host calls the app
 */
async function send (deck: ApiClient, host: ApiClient,
  name: string | undefined): Promise<{ id: number, name: string }>
{
  await waitUntil(async () => (await deck.get<Status>('/status')).state !== 'starting', deck)
  const { id, path: place, secret } = await host.post<NewAdoption>('/host/adoptions', { name })
  return { id, ...await deck.post<{ name: string }>('/move', { path: place, secret }) }
}

/** @throws {DeckError} start-failed, timed-out */
async function untilMoved (host: ApiClient, id: number) {
  await waitUntil(async () => {
    // The next master of the host knows nothing of it.
    const { state, reason } =
      await host.get<Adoption>(`/host/adoptions/${id}`).catch(nullOn('no-master', 'not-found')) ??
        { state: 'failed', reason: 'the host has ended meanwhile' }
    if (state === 'failed') throw new DeckError('start-failed', `adopt: ${reason}; the deck goes on as before`)
    return state === 'done'
  }, host)
}
