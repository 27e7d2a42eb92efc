import { withoutBase } from '../api/base-path.ts'
import { attempt } from '../errors.ts'
import { sendProblem } from '../problem.ts'
import { CONTENT_TYPE } from '../telemetry/prometheus-text.ts'
import { hostMetricsText, metricsTextOf } from './metrics-text.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Apps } from '../host/api-apps.ts'
import type { Auth } from '../api/roles.ts'
import type { Access } from './access.ts'

/**
 * Answers a collector that asks for the metrics of the port with a token, which may happen every few seconds for years:
 * nothing of what is behind the port is loaded for it.
 * @returns false: the request asks for something else, or is to be refused, which what is behind the port does
 */
export function answerScrape (req: IncomingMessage, res: ServerResponse,
  { apps, basePath, access }: { apps: Apps, basePath: string, access: () => Access }): boolean
{
  const path = withoutBase(basePath, String(req.url))
  if (req.method !== 'GET' || path !== '/metrics' || !req.headers.authorization) return false
  const auth = attempt(() => access().guard.admitRequest(req))
  if (auth?.via !== 'token') return false
  const text = textFor(apps, auth)
  if (text === null) return false
  req.auth = auth
  access().noteUse(req)
  text.then((text) => {
    res.setHeaders(SECURITY_HEADERS)
    res.setHeader('Content-Type', CONTENT_TYPE)
    res.end(text)
  }).catch((error) => sendProblem(res, error))
  return true
}

/** Null: the only app does not run */
function textFor (apps: Apps, auth: Auth): Promise<string> | null {
  if (apps.only === null) return hostMetricsText(apps, auth)
  const opened = apps.opened(apps.only)
  return opened && metricsTextOf(opened.deck)
}
