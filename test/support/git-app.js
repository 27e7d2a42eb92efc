import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { runCliHere } from './cli-here.js'
import { startDeckHere } from './deck-here.js'
import { tempFolder, writeFiles } from './folder.js'
import { createRepository, versionOf } from './repository.js'

/**
 * Starts the app of a repository from its folder, in which it is built already.
 * @param {import('./deck.js').TestOwner} t
 * @param {{ repository?: import('./repository.js').Repository, config?: Record<string, any>, start?: typeof startDeckHere | typeof import('./deck.js').startDeck }} [how]
 */
export async function startApp (t, { repository = createRepository(), config = {}, start = startDeckHere } = {}) {
  const { app } = repository
  const first = repository.commit(versionOf('one'), 'The first')
  writeFiles(app, { 'dist/built.txt': 'in place', 'clusterdeck.config.json': JSON.stringify(config) })
  const dataDir = tempFolder()
  const run = async () => {
    const deck = await start(t, path.join(app, 'app.js'), { workers: 1, dataDir, cwd: app, flags: ['--config', path.join(app, 'clusterdeck.config.json'), '--drain-idle-grace-ms', '100'] })
    await deck.until({ ready: 1 })
    return { deck, ask: async (route = '/') => await (await fetch(new URL(route, await deck.appUrl()), { headers: { connection: 'close' } })).text() }
  }
  const { deck, ask } = await run()
  return {
    deck,
    ask,
    /** Starts the same app in the same data folder, once that deck has stopped. */
    startAgain: run,
    repository,
    first,
    dataDir,
    /** @param {string[]} words */
    cli: (...words) => runCliHere([...words, '--data-dir', dataDir]),
    /** @param {object} order */
    order: (order) => deck.api('/releases', { method: 'POST', body: JSON.stringify(order) }),
    /** @param {{ id: number }} run */
    untilEnd: (run) => untilRunEnds(deck, run),
    /** The names of all release folders, and of what is kept beside them. */
    folders: () => existsSync(path.join(dataDir, 'releases')) ? readdirSync(path.join(dataDir, 'releases')).sort() : []
  }
}

/** @param {import('./deck-client.js').DeckClient} deck @param {{ id: number }} run of a build @returns {Promise<any>} what has become of it */
export async function untilRunEnds (deck, { id }) {
  await deck.untilEvent(({ type, detail }) => /^job\.(succeeded|interrupted|.*failed)$/.test(type) && detail.run === id, 'the end of the run')
  return (await deck.api(`/jobs/runs/${id}`)).body
}
