import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { DeckError, errorReason, toError } from '../errors.ts'
import { fallbackFolders } from './fallback-folder.ts'
import { sendRequest } from './http.ts'
import { isLoopback } from './loopback.ts'
import { oneLine } from './one-line.ts'
import { isAlive } from './process-identity.ts'
import { SECRETS, whyFolderDistrusted } from './trust.ts'
import type { IncomingMessage } from 'node:http'
import type { RunningDeck } from './running-decks.ts'

/**
 * The master of another deck of this user, asked by the admin token of its data folder. That token goes to the very
 * process that has registered the deck alone: over loopback, to a port of this user, with the certificate that it has
 * named.
 */

const MAX_ANSWER_BYTES = 4 * 1024 * 1024
/** A sign-in link names the deck that it comes from by no more than these. */
const MAX_NAME_CHARS = 200
const CODE_SHAPE = /^[\w-]{43}$/

/** @returns what a form calls it: several may have the same name */
export function idOf ({ dataDir }: Pick<RunningDeck, 'dataDir'>): string {
  return createHash('sha256').update(dataDir).digest('hex').slice(0, 16)
}

export function isOnLoopback ({ adminUrl }: Pick<RunningDeck, 'adminUrl'>) {
  return isLoopback(new URL(adminUrl).hostname)
}

/** @returns as `GET /api/v1/status` has it @throws {DeckError} no-master */
export function askStatus (deck: RunningDeck,
  options: { timeoutMs: number, env?: Record<string, string | undefined> }): Promise<unknown>
{
  return askDeck(deck, '/api/v1/status', { method: 'GET', ...options })
}

/**
 * @param order for how long it signs in as admin at most; `from`: the deck where they are now
 * @returns `url`: of the whole link, as people reach that deck
 * @throws {DeckError} no-master
 */
export async function askSignInLink (deck: RunningDeck, { ttlMs, from }: { ttlMs: number | null, from: string },
  options: { timeoutMs: number, env?: Record<string, string | undefined> }): Promise<{ code: string, url: string }>
{
  const ttl = ttlMs === null ? {} : { ttl: `${Math.max(1, Math.floor(ttlMs / 1000))}s` }
  const body = JSON.stringify({ role: 'admin', from: oneLine(from).slice(0, MAX_NAME_CHARS), ...ttl })
  const { url } = await askDeck(deck, '/api/v1/sign-in-links', { method: 'POST', body, ...options })
  const link = typeof url === 'string' && /^https?:/.test(url) && URL.canParse(url) ? new URL(url) : null
  const code = link?.searchParams.get('code') ?? ''
  if (!CODE_SHAPE.test(code))
    throw new DeckError('no-master', `${deck.name} has answered with something else than a sign-in link`)
  return { code, url }
}

async function askDeck (deck: RunningDeck, where: string,
  { method, body, timeoutMs, env = process.env }: { method: 'GET' | 'POST', body?: string, timeoutMs: number,
    env?: Record<string, string | undefined> })
{
  const reason = whyUnasked(deck)
  if (reason) throw new DeckError('no-master', `${deck.name} is not asked: ${reason}`)
  const token = await tokenOf(deck, env)
  try {
    const response = await sendRequest(new URL(where, deck.adminUrl).href, { method, body,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }) }, signal: AbortSignal.timeout(timeoutMs),
      fingerprint: deck.fingerprint, recipient: { processes: [deck.master] } })
    const content = await readBody(response)
    if (Number(response.statusCode) >= 300)
      throw new DeckError('no-master', `${deck.name} refuses to answer (HTTP ${response.statusCode})`)
    return JSON.parse(content)
  } catch (error) {
    if (error instanceof DeckError) throw error
    const why = toError(error).name === 'AbortError' ? `nothing within ${timeoutMs} ms` : errorReason(error)
    throw new DeckError('no-master', `${deck.name} does not answer at ${deck.adminUrl} (${why})`, { cause: error })
  }
}

function whyUnasked (deck: RunningDeck): string | null {
  if (!isAlive(deck.master)) return 'it has no master at the moment'
  if (!isOnLoopback(deck)) return `its admin page is at ${deck.adminUrl}, expected an address of this machine alone`
  if (deck.adminUrl.startsWith('https:') && deck.fingerprint === null)
    return 'it has not said which certificate is its own'
  return null
}

/**
 * Finds the token where the command line finds it.
 * @throws {DeckError} no-master
 */
async function tokenOf ({ name, dataDir }: RunningDeck, env: Record<string, string | undefined>) {
  for (const folder of [dataDir, ...fallbackFolders(dataDir, env)]) {
    const token = await tokenIn(folder)
    if (token) return token
  }
  throw new DeckError('no-master',
    `${name} is not asked: ${dataDir} has no admin.token that can be read and that nobody else could have written`)
}

async function tokenIn (folder: string): Promise<string | null> {
  try {
    return whyFolderDistrusted(folder, SECRETS) === null
      ? (await readFile(path.join(folder, 'admin.token'), 'utf8')).trim()
      : null
  } catch {
    // ENOENT: on a disk that takes nothing it is in the next one.
    return null
  }
}

async function readBody (response: IncomingMessage) {
  let content = ''
  for await (const chunk of response.setEncoding('utf8')) {
    content += chunk
    if (content.length > MAX_ANSWER_BYTES) throw new Error('its answer does not end')
  }
  return content
}
