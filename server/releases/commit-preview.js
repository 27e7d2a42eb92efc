import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { changesBetween } from './changes.js'
import { commitsBetween } from './commits.js'
import { describePackage } from './description.js'
import { refuseSubmodules } from './git-export.js'
import { inRelease, limitOf } from './git-releases.js'
import { attempt, describe, DEPLOY_HOOKS, unknownPreview } from './previews.js'
import { parsePackage } from './resolve.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./build-commands.js').Build} Build */
/** @typedef {import('./commit-finder.js').Look} Look */
/** @typedef {import('./commit-finder.js').Where} Where */
/** @typedef {import('./catalogue.js').Item} Item */
/** @typedef {import('./previews.js').Preview} Preview */
/** Does in a run what takes its time. @typedef {(run: { name: string, option: string, timeoutMs: number }, work: (tools: { exec: import('./git-export.js').Exec, tell: (line: string) => void }) => Promise<void>) => Promise<void>} RunAside  rejects as the work does */

/**
 * Tells what the deploy of a commit would do, from git alone: nothing is exported or built. Where the repository has an address, git may have to fetch.
 * @param {object} parts
 * @param {Pick<import('./catalogue.js').Catalogue, 'find' | 'nextNumber'>} parts.catalogue
 * @param {ReturnType<typeof import('./commit-finder.js').createCommitFinder>} parts.commits
 * @param {Pick<ReturnType<typeof import('./release-folders.js').createReleaseFolders>, 'checkShared'>} parts.folders
 * @param {Pick<ReturnType<typeof import('./module-cache.js').createModuleCache>, 'nameOf' | 'has'>} parts.modules
 * @param {Pick<ReturnType<typeof import('./maker.js').createMaker>, 'checkLeftBehind' | 'startedWith'>} parts.maker
 * @param {string} parts.releaseFolder
 * @param {Record<string, string | undefined>} parts.inherited  by git
 * @param {() => import('./launch-spec.js').LaunchSpec} parts.latest  of the last deploy
 * @param {() => string | null} parts.current  the id of the release that runs
 */
export function createCommitPreview ({ catalogue, commits, folders, modules, maker, releaseFolder, inherited, latest, current }) {
  /**
   * @param {{ git: string, isGuessAccepted?: boolean }} wanted  as for a deploy @param {import('./previews.js').Refuse} refuse  takes each refusal of the deploy @param {RunAside} runAside
   * @returns {Promise<Preview>}
   */
  return async function previewCommit ({ git, isGuessAccepted = false }, refuse, runAside) {
    const where = await attempt(refuse, () => commits.where())
    if (!where) return unknownPreview()
    const { config, spec, home } = where
    const compared = { now: config, deployed: latest().config }
    await attempt(refuse, () => folders.checkShared({ shared: config.releases.shared, home }))
    await attempt(refuse, () => maker.checkLeftBehind(spec, home))
    const seen = await attempt(refuse, () => find(git, where, runAside))
    if (!seen) return { ...unknownPreview(), config: compared }
    const files = await seen.tree.files()
    await attempt(refuse, async () => refuseSubmodules(files ?? []))
    const how = await attempt(refuse, async () => ({ build: await commits.buildOf(seen, where) }))
    const build = how?.build ?? null
    await attempt(refuse, async () => commits.checkGuess(build, isGuessAccepted))
    const same = how && await attempt(refuse, () => commits.findSame(commits.stampOf(seen, build, where)))
    const next = same?.item.release ?? await draftOf(seen, build, where)
    const running = catalogue.find(current() ?? '')
    return {
      release: {
        id: next.id,
        isNew: !same,
        ...describe(next),
        arguments: config.args.length,
        nodeOptions: config.execArgv.length,
        hooks: DEPLOY_HOOKS.filter((name) => config.hooks[name] !== undefined)
      },
      build: same || !build
        ? null
        : { text: buildText(build), isGuess: build.isGuess, packages: build.install && await packagesOf(build, seen, files?.map(({ name }) => name) ?? null) },
      changed: running ? changesBetween(running, same?.item ?? { release: next, marks: { ...spec.marks, ...(config.secrets && secretMarks(running)) } }) : null,
      commits: running ? await commitsBetween(running.release, next, inherited) : null,
      files: running ? await filesSince(running.release, seen) : null,
      config: compared,
      warnings: []
    }
  }

  /** @param {string} git @param {Where} where @param {RunAside} runAside */
  async function find (git, where, runAside) {
    const address = await commits.addressToFetch(git, where)
    if (address !== null) await runAside({ name: `git fetch ${address}`, ...limitOf(where.spec) }, (tools) => commits.fetch(where, tools))
    return await commits.find(git, where)
  }

  /** @param {Look} seen @param {Build | null} build @param {Where} where @returns {Promise<Release>} as far as it is known before its build */
  async function draftOf ({ gitDir, prefix, found, tree }, build, { config: { entry, cwd }, spec, home }) {
    const id = `r${catalogue.nextNumber()}`
    const top = path.join(await realpath(releaseFolder).catch(() => releaseFolder), id)
    const within = inRelease({ top, home, prefix })
    return {
      id,
      mode: 'folder',
      entry: within(entry),
      path: path.join(top, prefix).replace(/\/$/, ''),
      cwd: within(cwd),
      source: gitDir,
      package: describePackage(parsePackage(await tree.file(`${prefix}package.json`))),
      git: { ...found, isDirty: false },
      lockFile: build?.lock?.digest ?? null,
      createdAt: new Date().toISOString(),
      ...maker.startedWith(spec)
    }
  }

  /** @param {Build} build @param {Look} seen @param {string[] | null} names  of all its files @returns {Promise<'kept' | 'installed' | null>} null: not known */
  async function packagesOf (build, { tree }, names) {
    if (names === null) return null
    return modules.has(await modules.nameOf(build, { names, read: tree.file })) ? 'kept' : 'installed'
  }

  /** Secrets are read in the folder of a release, once that is there: until then they count as they are. @param {Item} running */
  function secretMarks ({ marks, spec }) {
    const secret = Object.keys(spec?.secrets ?? latest().secrets)
    return Object.fromEntries(Object.entries(marks).filter(([name]) => secret.includes(name)))
  }
}

/** @param {Release} running @param {Look} seen @returns {ReturnType<Look['tree']['since']>} null: not known, as the release that runs is not just a commit of the repository */
async function filesSince ({ git }, { tree }) {
  return git && git.isDirty === false ? await tree.since(git.commit) : null
}

/** @param {Build} build */
function buildText ({ isGuess, text, command }) {
  return isGuess ? text : (command ?? []).join(' ')
}
