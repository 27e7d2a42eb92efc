import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { OWNER } from '../../server/config/actor-names.ts'
import { startAdmin, TOKEN, type Admin } from './admin.ts'
import { runCliHere } from './cli-here.ts'
import { tempFolder } from './folder.ts'
import { serveHttp } from './http-server.ts'
import { ownVariables } from './place.ts'
import { play, wordsIn } from './transcript.ts'
import type http from 'node:http'
import type { TestContext } from 'node:test'

/**
 * A data folder, and command lines that are run in it. `adminUrl`, `pid`: of the master that is running, as the folder
 * says. Returns a function that takes a line, or its words; `folder`: where that is typed.
 */
export function deckFolder (
  { adminUrl, token = TOKEN, pid = process.pid }: { adminUrl?: string, token?: string, pid?: number } = {}
) {
  const cwd = tempFolder()
  if (adminUrl) {
    writeFileSync(path.join(cwd, 'master.json'),
      JSON.stringify({ pid, adminUrl, startedAt: '2026-01-01T00:00:00.000Z' }))
    writeFileSync(path.join(cwd, 'admin.token'), `${token}\n`)
  }
  return (line: string | string[], env: Record<string, string> = {}, folder: string = cwd) =>
    runCliHere(typeof line === 'string' ? wordsIn(line) : line, { cwd: folder,
      env: { ...ownVariables(), CLUSTERDECK_DATA_DIR: cwd, ...env } })
}

/** A real admin port over a deck without processes, and the commands of whoever sits in its data folder. */
export async function openDeck (t: TestContext) {
  const admin = await startAdmin(t)
  const cli = deckFolder({ adminUrl: admin.url })
  return { ...admin, cli, /** see play() */ says: (transcript: string) => play(transcript, cli, ordersOf(admin.deck)) }
}

/** Tells each time what the deck was ordered since, by its owner. */
function ordersOf (deck: Admin['deck']): () => string[] {
  let seen = deck.dispatched.length
  return () => {
    const orders = deck.dispatched.slice(seen)
    seen = deck.dispatched.length
    return orders.map(({ type, order, ...fields }) => {
      const { actor, ...others } = order ?? fields
      return `${type} ${JSON.stringify(others)}${actor === OWNER ? '' : ` by ${actor}`}`
    })
  }
}

/** Something in the place of a master. `answer`: to all but the question whether it is there. Returns its address. */
export async function serveMaster (t: TestContext, answer: (...call: Parameters<http.RequestListener>) => unknown) {
  const { url } = await serveHttp(t, async (req, res) => {
    if (req.url === '/healthz') {
      assert.equal(req.headers.authorization, undefined)
      return res.end()
    }
    try {
      await answer(req, res)
    } catch {
      // What it asks itself may have ended with the test.
      res.destroy()
    }
  })
  return url
}

export function answerJson (res: http.ServerResponse, status: number, body: unknown,
  type: string = 'application/json')
{
  res.writeHead(status, { 'content-type': type, connection: 'close' }).end(JSON.stringify(body))
}
