import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { get } from './asking.ts'
import { startDeck, type Launch, type TestOwner } from './deck.ts'
import { startDeckHere } from './deck-here.ts'
import { tempFolder } from './folder.ts'
import { untilFound } from './until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'
import type { Seen } from './event-log.ts'

/** Decks that are members of one fleet, each with an app and a data folder of its own. */
export type Member = Awaited<ReturnType<typeof startMember>>
type SeenFleet = Seen<Fleet>

export async function startMember (t: TestOwner,
  { name, servers, fleet = 'test', app = 'shop', labels = {}, workers = 1, accept = 'operate', flags = [],
    isApart = false, env = {}, launch = {}, root = tempFolder() }: {
      name: string,
      servers: string,
      fleet?: string,
      /** what it is called */
      app?: string,
      labels?: Record<string, string>,
      workers?: number,
      accept?: 'nothing' | 'read' | 'operate',
      flags?: string[],
      /** in processes of its own, so that it can be killed */
      isApart?: boolean,
      /** of its master, where it is apart */
      env?: Record<string, string>,
      /** where it is apart */
      launch?: Launch,
      /** a folder for all of it */
      root?: string
    })
{
  const folder = path.join(root, 'app')
  const heldBy = path.join(root, 'held')
  mkdirSync(folder, { recursive: true })
  if (!existsSync(path.join(folder, 'app.js'))) writeRelease(folder, 'v1', { heldBy })
  const config = path.join(root, 'clusterdeck.json')
  writeFileSync(config, JSON.stringify({ name: app, fleet: { labels } }))
  const dataDir = path.join(root, 'data')
  const words = ['--config', config, '--fleet', servers, '--fleet-name', fleet, '--fleet-member', name,
    '--fleet-accept', accept, ...flags]
  const options = { workers, dataDir, flags: words, env }
  const deck = isApart
    ? await startDeck(t, path.join(folder, 'app.js'), { ...options, launch })
    : await startDeckHere(t, path.join(folder, 'app.js'), options)
  await deck.until({ ready: workers })
  return Object.assign(deck, {
    name,
    appFolder: folder,
    dataDir,

    ...deploysIn(folder, heldBy),

    async fleet (): Promise<SeenFleet> {
      return (await deck.api('/fleet')).body as SeenFleet
    },

    untilFleet (isSo: (fleet: SeenFleet) => boolean, what: string): Promise<SeenFleet> {
      let seen: SeenFleet | null = null
      return untilFound(async () => {
        const { status, body } = await deck.api('/fleet')
        seen = body as SeenFleet
        return status === 200 && isSo(seen) && seen
      }, () => `${what}: ${JSON.stringify(seen?.rollout ?? seen)}`, { patienceMs: PATIENCE_MS })
    },

    /** @returns which version serves */
    version: async (): Promise<string> => get(await deck.appUrl())
  })
}

const PATIENCE_MS = 120_000

/** @returns once each sees all others */
export async function startFleet (t: TestOwner, names: string[],
  options: Omit<Parameters<typeof startMember>[1], 'name'>): Promise<Member[]>
{
  const members = await Promise.all(names.map((name) => startMember(t, { ...options, name })))
  for (const member of members)
    await member.untilFleet(
      ({ members: seen }) => names.every((name) => seen.some((each) => each.member === name && !each.isSilent)),
      'all members to see each other'
    )
  return members
}

/** `folder`: of an app; `heldBy`: a file that holds it back */
export function deploysIn (folder: string, heldBy: string) {
  return {
    /** What a deploy finds from now on. */
    put: (version: string, options?: { isBad?: boolean }) => writeRelease(folder, version, { ...options, heldBy }),

    /** No worker gets ready from now on, so that its turn lasts. */
    hold () {
      writeFileSync(heldBy, '')
    },

    letGo () {
      rmSync(heldBy)
    }
  }
}

/** `isBad`: it does not start; `heldBy`: it does not listen while there is this file */
export function writeRelease (folder: string, version: string,
  { isBad = false, heldBy = '' }: { isBad?: boolean, heldBy?: string } = {})
{
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', type: 'module' }))
  writeFileSync(path.join(folder, 'app.js'),
    isBad ? 'throw new Error("this release is broken")\n' : `import { existsSync } from 'node:fs'
import http from 'node:http'
while (existsSync(${JSON.stringify(heldBy)})) await new Promise((resolve) => setTimeout(resolve, 20))
console.log(${JSON.stringify(`this is ${version}`)})
http.createServer(function answer (request, response) {
  if (request.url === '/crash') throw new Error('the cart is empty')
  response.end(${JSON.stringify(version)})
}).listen(0)
`)
}
