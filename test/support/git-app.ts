import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { runCliHere } from './cli-here.ts'
import { startDeckHere } from './deck-here.ts'
import { tempFolder, writeFiles } from './folder.ts'
import { createRepository, versionOf, type Repository } from './repository.ts'
import type { TestOwner, startDeck } from './deck.ts'
import type { DeckClient } from './deck-client.ts'
import type { KeptRun } from '../../server/jobs/api.ts'
import type { Seen } from './event-log.ts'

/** Starts the app of a repository from its folder, in which it is built already. */
export async function startApp (t: TestOwner,
  { repository = createRepository(), config = {}, start = startDeckHere }: { repository?: Repository,
    config?: Record<string, unknown>, start?: typeof startDeckHere | typeof startDeck } = {})
{
  const { app } = repository
  const first = repository.commit(versionOf('one'), 'The first')
  writeFiles(app, { 'dist/built.txt': 'in place', 'clusterdeck.config.json': JSON.stringify(config) })
  const dataDir = tempFolder()
  const run = async () => {
    const deck = await start(t, path.join(app, 'app.js'), { workers: 1, dataDir, cwd: app,
      flags: ['--config', path.join(app, 'clusterdeck.config.json'), '--drain-idle-grace-ms', '100'] })
    await deck.until({ ready: 1 })
    return { deck, ask: deck.ask }
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
    cli: (...words: string[]) => runCliHere([...words, '--data-dir', dataDir]),
    order: (order: object) => deck.post('/releases', order),
    untilEnd: (run: { id: number }) => untilRunEnds(deck, run),
    /** The names of all release folders, and of what is kept beside them. */
    folders: () => existsSync(path.join(dataDir, 'releases')) ? readdirSync(path.join(dataDir, 'releases')).sort() : []
  }
}

const ENDS = ['job.succeeded', 'job.interrupted', 'job.failed', 'job.command-failed']

/** `run`: of a build. Returns what has become of it. */
export async function untilRunEnds (deck: DeckClient, { id }: { id: number }): Promise<Seen<KeptRun>> {
  await deck.untilEvent(ENDS, { detail: { run: id } })
  return (await deck.api(`/jobs/runs/${id}`)).body as Seen<KeptRun>
}
