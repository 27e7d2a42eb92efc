import { withoutBase } from '../api/base-path.ts'
import { attempt } from '../errors.ts'
import { sendProblem } from '../problem.ts'
import { CONTENT_TYPE } from '../telemetry/prometheus-text.ts'
import { hostMetricsText, metricsTextOf } from './metrics-text.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Apps } from '../host/api-apps.ts'
import { mayUse, type Auth } from '../api/roles.ts'
import type { Access } from './access.ts'

/** Of the port, or of an app of a host */
const METRICS = /^(?:\/apps\/([^/]+))?\/metrics$/

/**
 * Answers a collector that asks for metrics with a token, which may happen every few seconds for years: nothing of what
 * is behind the port is loaded for it.
 * @returns false: the request asks for something else, or is to be refused, which what is behind the port does
 */
export function answerScrape (req: IncomingMessage, res: ServerResponse,
  { apps, basePath, access }: { apps: Apps, basePath: string, access: () => Access }): boolean
{
  const path = METRICS.exec(withoutBase(basePath, String(req.url)))
  if (req.method !== 'GET' || !path || !req.headers.authorization) return false
  const auth = attempt(() => access().guard.admitRequest(req))
  if (auth?.via !== 'token') return false
  const text = textFor(apps, auth, path[1])
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

/** Null: there is no such app, or it does not run, or it is not the sender's to see. `name`: of an app of a host */
function textFor (apps: Apps, auth: Auth, name: string | undefined): Promise<string> | null {
  if (apps.only !== null && name !== undefined) return null
  if (apps.only === null && name === undefined) return hostMetricsText(apps, auth)
  const opened = apps.only !== null || mayUse(auth, String(name)) ? apps.opened(apps.only ?? String(name)) : null
  return opened && metricsTextOf(opened.deck)
}
