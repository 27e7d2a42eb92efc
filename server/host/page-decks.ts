import os from 'node:os'
import { DeckError } from '../errors.ts'
import type { Tone } from '../events/kinds.ts'
import type { OtherDeck, Presence } from '../system/other-decks.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { Auth } from '../api/roles.ts'

/**
 * Lists the decks of this user on this machine. Only a session signed in with the token of the data folder sees them:
 * nobody else could get into the other decks without this one.
 */
type Deck = Pick<import('../deck.ts').Deck, 'status' | 'snapshot' | 'events' | 'others'>
/** `workers`: `ready/wanted`; `text`: the health in one sentence */
type State = { word: string, tone: Tone, workers: string, text: string }
type Row = State & { name: string, cwd: string, isOwn: boolean, id: string, adminUrl: string, isReachable: boolean,
  hint: string }

const WITHOUT_ANSWER: Readonly<Record<Exclude<Presence, 'answers'>, State>> = Object.freeze({
  silent: { word: 'does not answer', tone: 'bad', workers: '',
    text: 'Its master runs, but its admin page does not answer.' },
  restarting: { word: 'restarting', tone: 'warn', workers: '', text: 'Its keeper starts the next master.' },
  elsewhere: { word: 'not checked', tone: 'idle', workers: '', text: 'Its admin page is not on the loopback address.' }
})

const MAX_TEXT_CHARS = 200
/** Words that a shell needs no quotes for. */
const PLAIN_WORD = /^[\w@.][\w@./-]*$/

/** `isAtLoopback`: see isAtLoopback() @returns this deck comes first @throws {DeckError} forbidden */
export async function decksModel (
  { deck, can, isAtLoopback = false, host = os.hostname() }: { deck: Deck, can?: Powers, isAtLoopback?: boolean,
    host?: string }
): Promise<{ decks: Row[] }> {
  permitSwitch(can)
  const { app, ...status } = deck.status()
  const own = { ...stateOf(status), name: app.name, cwd: app.cwd, isOwn: true, id: '', adminUrl: '', isReachable: true,
    hint: '' }
  return { decks: [own, ...(await deck.others.health()).map((other) => toRow(other, { isAtLoopback, host }))] }
}

function toRow ({ id, name, cwd, adminUrl, publicUrl, presence, status }: OtherDeck,
  { isAtLoopback, host }: { isAtLoopback: boolean, host: string }): Row
{
  const isReachable = presence !== 'elsewhere' && (isAtLoopback || publicUrl !== null)
  const state = presence === 'answers' ? stateOf(status) : WITHOUT_ANSWER[presence]
  return { ...state, name, cwd, isOwn: false, id, adminUrl, isReachable,
    hint: isReachable ? '' : wayTo({ name, adminUrl }, host) }
}

/** `status`: as the master of another deck sends it, whose version may differ */
export function stateOf (status: unknown): State {
  const { state, readyWorkers, finishedWorkers, desiredWorkers, health } = Object(status)
  const { tone, text } = Object(health)
  const [ready, wanted] = [numberOf(readyWorkers) + numberOf(finishedWorkers), numberOf(desiredWorkers)]
  return { ...wordOf({ state, tone, ready, wanted }), workers: `${ready}/${wanted}`,
    text: typeof text === 'string' ? text.slice(0, MAX_TEXT_CHARS) : '' }
}

function wordOf (
  { state, tone, ready, wanted }: { state: unknown, tone: unknown, ready: number, wanted: number }
): { word: string, tone: Tone } {
  if (state === 'stopping') return { word: 'stopping', tone: 'drain' }
  if (state === 'starting') return { word: 'starting', tone: 'info' }
  if (ready === 0 && wanted > 0) return { word: 'not ready', tone: 'bad' }
  if (ready < wanted || tone === 'bad') return { word: 'degraded', tone: tone === 'bad' ? 'bad' : 'warn' }
  // A warning remains, such as an open notice or a changed file.
  return { word: 'ready', tone: tone === 'warn' ? 'warn' : 'ok' }
}

function numberOf (value: unknown) {
  return Number.isSafeInteger(value) ? Number(value) : 0
}

/** Says how to reach a deck whose address their browser cannot use. */
function wayTo ({ name, adminUrl }: { name: string, adminUrl: string }, host: string) {
  const { host: address, port } = new URL(adminUrl)
  const open = PLAIN_WORD.test(name) ? `, or run clusterdeck open -n ${name} there` : ''
  return `Not reachable from here. Run ssh -L ${port}:${address} ${host}${open}.`
}

/**
 * Signs the user of this deck in to another one, for no longer than this session lasts.
 * @returns where the browser should go
 * @throws {DeckError} not-found, not-possible, no-master
 */
export async function switchDeck (
  { deck, id, auth, isAtLoopback, now }: { deck: Deck, id: string, auth: Auth, isAtLoopback: boolean, now: number }
): Promise<URL> {
  const { name, adminUrl, publicUrl } = deck.others.get(id)
  if (!isAtLoopback && publicUrl === null) {
    throw new DeckError('not-possible',
      `${name} has its admin page at ${adminUrl}. ${wayTo({ name, adminUrl }, os.hostname())}`)
  }
  const { code, url } = await deck.others.signInLink(id, { ttlMs: auth.until === null ? null : auth.until - now,
    from: deck.snapshot().app.name })
  deck.events.publish({ type: 'access.switched', actor: auth.actor,
    message: `${auth.actor} (${auth.role}) switched to the deck ${name} at ${adminUrl}`,
    detail: { deck: name, adminUrl } })
  return isAtLoopback ? new URL(`/sign-in?code=${code}`, adminUrl) : new URL(url)
}

/** @throws {DeckError} forbidden */
export function permitSwitch (can: Powers | undefined) {
  if (!can?.switchDecks)
    throw new DeckError('forbidden',
      'Only a session signed in with the token of the data folder can see the other decks on this machine')
}
