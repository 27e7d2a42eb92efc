import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { changesBetween } from './changes.ts'
import { commitsBetween } from './commits.ts'
import { describePackage } from './description.ts'
import { refuseSubmodules, type Exec } from './git-export.ts'
import { inRelease, limitOf } from './git-releases.ts'
import { unlessRefused, describe, DEPLOY_HOOKS, unknownPreview, type Preview, type Refuse } from './previews.ts'
import { parsePackage } from './resolve.ts'
import type { Release } from '../lifecycle/state.ts'
import type { Build } from './build-commands.ts'
import type { Look, Where } from './commit-finder.ts'
import type { Item } from './catalogue.ts'
import type { ReleaseParts, Stock } from './stock.ts'

/** Does in a run what takes its time, and rejects as the work does. */
type RunAside = (run: { name: string, option: string, timeoutMs: number },
  work: (tools: { exec: Exec, tell: (line: string) => void }) => Promise<void>) => Promise<void>

/**
 * Tells what the deploy of a commit would do, from git alone: nothing is exported or built. Where the repository has an
 * address, git may have to fetch.
 */
export function createCommitPreview (stock: Stock, { commits, maker, launches: { latest } }: ReleaseParts) {
  const { catalogue, folders, modules, dataDir: { releaseFolder }, inherited } = stock

  /** `wanted`: as for a deploy; `refuse`: takes each refusal of the deploy */
  return async function previewCommit ({ git, isGuessAccepted = false }: { git: string, isGuessAccepted?: boolean },
    refuse: Refuse, runAside: RunAside): Promise<Preview>
  {
    const where = await unlessRefused(refuse, () => commits.where())
    if (!where) return unknownPreview()
    const { config, spec, home } = where
    const compared = { now: config, deployed: latest().config }
    await unlessRefused(refuse, () => folders.checkShared({ shared: config.releases.shared, home }))
    await unlessRefused(refuse, () => maker.checkLeftBehind(spec, home))
    const seen = await unlessRefused(refuse, () => find(git, where, runAside))
    if (!seen) return { ...unknownPreview(), config: compared }
    const files = await seen.tree.files()
    await unlessRefused(refuse, async () => refuseSubmodules(files ?? []))
    const how = await unlessRefused(refuse, async () => ({ build: await commits.buildOf(seen, where) }))
    const build = how?.build ?? null
    await unlessRefused(refuse, async () => commits.checkGuess(build, isGuessAccepted))
    const same = how && await unlessRefused(refuse, () => commits.findSame(commits.stampOf(seen, build, where)))
    const next = same?.item.release ?? await draftOf(seen, build, where)
    const running = stock.running()
    return {
      release: { id: next.id, isNew: !same, ...describe(next), arguments: config.args.length,
        nodeOptions: config.execArgv.length, hooks: DEPLOY_HOOKS.filter((name) => config.hooks[name] !== undefined) },
      build: same || !build
        ? null
        : { text: build.isGuess ? build.text : (build.command ?? []).join(' '), isGuess: build.isGuess,
          packages: build.install && await packagesOf(build, seen, { names: files?.map(({ name }) =>
            name
          ) ?? null, nodeVersion: config.appNode?.version ?? process.versions.node }) },
      changed: running
        ? changesBetween(running,
          same?.item ?? { release: next, marks: { ...spec.marks, ...(config.secrets && secretMarks(running)) } })
        : null,
      commits: running ? await commitsBetween(running.release, next, inherited) : null,
      files: running ? await filesSince(running.release, seen) : null,
      config: compared,
      warnings: []
    }
  }

  async function find (git: string, where: Where, runAside: RunAside) {
    const address = await commits.addressToFetch(git, where)
    if (address !== null)
      await runAside({ name: `git fetch ${address}`, ...limitOf(where.spec) }, (tools) => commits.fetch(where, tools))
    return await commits.find(git, where)
  }

  /** @returns as far as it is known before its build */
  async function draftOf ({ gitDir, prefix, found, tree }: Look, build: Build | null,
    { config: { entry, cwd }, spec, home }: Where): Promise<Release>
  {
    const id = `r${catalogue.nextNumber()}`
    const top = path.join(await realpath(releaseFolder).catch(() => releaseFolder), id)
    const within = inRelease({ top, home, prefix })
    return { id, mode: 'folder', entry: within(entry), path: path.join(top, prefix).replace(/\/$/, ''),
      cwd: within(cwd), source: gitDir,
      package: describePackage(parsePackage(await tree.file(`${prefix}package.json`))),
      git: { ...found, isDirty: false }, lockFile: build?.lock?.digest ?? null, createdAt: new Date().toISOString(),
      ...maker.startedWith(spec) }
  }

  /** `names`: of all its files. Returns null: not known. */
  async function packagesOf (build: Build, { tree }: Look,
    { names, nodeVersion }: { names: string[] | null, nodeVersion: string }): Promise<'kept' | 'installed' | null>
  {
    if (names === null) return null
    return modules.has(await modules.nameOf(build, { names, nodeVersion, read: tree.file })) ? 'kept' : 'installed'
  }

  /** Secrets are read in the folder of a release, once that is there: until then they count as they are. */
  function secretMarks ({ marks, spec }: Item) {
    const secret = Object.keys(spec?.secrets ?? latest().secrets)
    return Object.fromEntries(Object.entries(marks).filter(([name]) => secret.includes(name)))
  }
}

/** Null: not known, as the release that runs is not just a commit of the repository */
async function filesSince ({ git }: Release, { tree }: Look): ReturnType<Look['tree']['since']> {
  return git && git.isDirty === false ? await tree.since(git.commit) : null
}
