import { withoutBase } from '../api/base-path.ts'
import { RETRY_AFTER_S } from '../problem.ts'
import { isReady } from '../words/health.ts'
import { isProbe } from './guard.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Apps } from '../host/api-apps.ts'

/** The states of an app that somebody has stopped: nobody waits until it is ready. */
const STOPPED = new Set(['stopping', 'stopped'])

/**
 * Answers probes of the port itself, which may come each second for years: they load nothing of what is behind it.
 * @returns false: the request is no probe, comes from a page, or has a query
 */
export function answerProbe (req: IncomingMessage, res: ServerResponse,
  { apps, basePath }: { apps: Pick<Apps, 'only' | 'states' | 'opened'>, basePath: string }): boolean
{
  const url = withoutBase(basePath, String(req.url))
  if (!isProbe({ method: req.method, url }) || url.includes('?') || req.headers.origin !== undefined) return false
  if (url === '/healthz') sendAlive(res)
  else sendReady(res, apps.only === null ? areAllReady(apps) : isAppReady(apps, apps.only))
  return true
}

export function sendAlive (res: ServerResponse) {
  send(res, 200, 'ok\n')
}

export function sendReady (res: ServerResponse, ready: boolean) {
  if (!ready) res.setHeader('Retry-After', RETRY_AFTER_S)
  send(res, ready ? 200 : 503, ready ? 'ready\n' : 'not ready\n')
}

/** Tells whether every app that should run is ready or has finished. */
export function areAllReady (apps: Pick<Apps, 'states' | 'opened'>): boolean {
  return apps.states().every(({ name, state }) => STOPPED.has(state) || isAppReady(apps, name))
}

export function isAppReady (apps: Pick<Apps, 'opened'>, name: string): boolean {
  const opened = apps.opened(name)
  return opened !== null && isReady(opened.deck.snapshot())
}

function send (res: ServerResponse, status: number, text: string) {
  res.statusCode = status
  res.setHeaders(SECURITY_HEADERS)
  res.setHeader('Content-Type', 'text/plain; charset=utf-8')
  res.end(text)
}
