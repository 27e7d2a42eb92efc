import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { startDeck } from './deck.js'
import { startDeckHere } from './deck-here.js'
import { tempFolder } from './folder.js'

/**
 * Decks that are members of one fleet, each with an app and a data folder of its own.
 * @typedef {Awaited<ReturnType<typeof startMember>>} Member
 */

/**
 * @param {import('./deck.js').TestOwner} t
 * @param {object} options
 * @param {string} options.name
 * @param {string} options.servers
 * @param {string} [options.fleet]
 * @param {string} [options.app]  what it is called
 * @param {Record<string, string>} [options.labels]
 * @param {number} [options.workers]
 * @param {'nothing' | 'read' | 'operate'} [options.accept]
 * @param {string[]} [options.flags]
 * @param {boolean} [options.isApart]  in processes of its own, so that it can be killed
 * @param {Record<string, string>} [options.env]  of its master, where it is apart
 * @param {import('./deck.js').Launch} [options.launch]  where it is apart
 * @param {string} [options.root]  a folder for all of it
 */
export async function startMember (t, { name, servers, fleet = 'test', app = 'shop', labels = {}, workers = 1, accept = 'operate', flags = [], isApart = false, env = {}, launch = {}, root = tempFolder() }) {
  const folder = path.join(root, 'app')
  const heldBy = path.join(root, 'held')
  mkdirSync(folder, { recursive: true })
  if (!existsSync(path.join(folder, 'app.js'))) writeRelease(folder, 'v1', { heldBy })
  const config = path.join(root, 'clusterdeck.json')
  writeFileSync(config, JSON.stringify({ name: app, fleet: { labels } }))
  const dataDir = path.join(root, 'data')
  const words = ['--config', config, '--fleet', servers, '--fleet-name', fleet, '--fleet-member', name, '--fleet-accept', accept, ...flags]
  const options = { workers, dataDir, flags: words, env }
  const deck = isApart ? await startDeck(t, path.join(folder, 'app.js'), { ...options, launch }) : await startDeckHere(t, path.join(folder, 'app.js'), options)
  await deck.until({ ready: workers })
  return Object.assign(deck, {
    name,
    appFolder: folder,
    dataDir,

    /** What a deploy finds from now on. @param {string} version @param {{ isBad?: boolean }} [options] */
    put: (version, options) => writeRelease(folder, version, { ...options, heldBy }),

    /** No worker gets ready from now on, so that its turn lasts. */
    hold () { writeFileSync(heldBy, '') },

    letGo () { rmSync(heldBy) },

    /** @returns {Promise<any>} */
    async fleet () { return (await deck.api('/fleet')).body },

    /** @param {(fleet: any) => boolean} isSo @param {string} what @returns {Promise<any>} */
    async untilFleet (isSo, what) {
      const until = performance.now() + PATIENCE_MS
      for (;;) {
        const { status, body: found } = await deck.api('/fleet')
        if (status === 200 && isSo(found)) return found
        if (performance.now() > until) throw new Error(`waited ${PATIENCE_MS} ms for ${what}: ${JSON.stringify(found.rollout ?? found)}`)
        await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
      }
    },

    /** @returns {Promise<string>} which version serves */
    async version () {
      const response = await fetch(await deck.appUrl(), { headers: { connection: 'close' } })
      return response.text()
    }
  })
}

const PATIENCE_MS = 120_000
const LOOK_AGAIN_MS = 100

/**
 * @param {import('./deck.js').TestOwner} t @param {string[]} names
 * @param {Omit<Parameters<typeof startMember>[1], 'name'>} options
 * @returns {Promise<Member[]>} once each sees all others
 */
export async function startFleet (t, names, options) {
  const members = await Promise.all(names.map((name) => startMember(t, { ...options, name })))
  for (const member of members) await member.untilFleet(({ members: seen }) => names.every((name) => seen.some((/** @type {any} */ each) => each.member === name && !each.isSilent)), 'all members to see each other')
  return members
}

/**
 * @param {string} folder @param {string} version
 * @param {{ isBad?: boolean, heldBy?: string }} [options] `isBad`: it does not start; `heldBy`: it does not listen while there is this file
 */
export function writeRelease (folder, version, { isBad = false, heldBy = '' } = {}) {
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', type: 'module' }))
  writeFileSync(path.join(folder, 'app.js'), isBad
    ? 'throw new Error("this release is broken")\n'
    : `import { existsSync } from 'node:fs'
import http from 'node:http'
while (existsSync(${JSON.stringify(heldBy)})) await new Promise((resolve) => setTimeout(resolve, 20))
console.log(${JSON.stringify(`this is ${version}`)})
http.createServer(function answer (request, response) {
  if (request.url === '/crash') throw new Error('the cart is empty')
  response.end(${JSON.stringify(version)})
}).listen(0)
`)
}
