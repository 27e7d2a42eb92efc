import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { runCliHere } from './cli-here.js'
import { startDeckHere } from './deck-here.js'
import { tempFolder, writeFiles } from './folder.js'
import { createRepository, versionOf } from './repository.js'

/**
 * Starts the app of a repository from its folder, where it is built.
 * @param {import('./deck.js').TestOwner} t
 * @param {{ repository?: import('./repository.js').Repository, config?: Record<string, any>, start?: typeof startDeckHere | typeof import('./deck.js').startDeck, flags?: string[] }} [how]
 */
export async function startApp (t, { repository = createRepository(), config = {}, start = startDeckHere, flags = [] } = {}) {
  const { app } = repository
  const first = repository.commit(versionOf('one'), 'The first')
  writeFiles(app, { 'dist/built.txt': 'in place', 'clusterdeck.config.json': JSON.stringify(config) })
  const dataDir = tempFolder()
  const deck = await start(t, path.join(app, 'app.js'), { workers: 1, dataDir, cwd: app, flags: ['--config', path.join(app, 'clusterdeck.config.json'), '--drain-idle-grace-ms', '100', ...flags] })
  await deck.until({ ready: 1 })
  return {
    deck,
    repository,
    first,
    dataDir,
    ask: async (route = '/') => await (await fetch(new URL(route, await deck.appUrl()), { headers: { connection: 'close' } })).text(),
    /** @param {string[]} words */
    cli: (...words) => runCliHere([...words, '--data-dir', dataDir]),
    /** @param {object} order */
    order: (order) => deck.api('/releases', { method: 'POST', body: JSON.stringify(order) }),
    /** @param {any} run @returns {Promise<any>} */
    untilEnd: async (run) => {
      await deck.untilEvent(({ type, detail }) => /^job\.(succeeded|interrupted|.*failed)$/.test(type) && detail.run === run.id, 'the end of the run')
      return (await deck.api(`/jobs/runs/${run.id}`)).body
    },
    /** What is in the folder of the releases. */
    folders: () => existsSync(path.join(dataDir, 'releases')) ? readdirSync(path.join(dataDir, 'releases')).sort() : []
  }
}
