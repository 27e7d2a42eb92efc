import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { homeFolder } from '../system/home-folder.js'
import { makeFolders } from '../system/make-folders.js'

/** @typedef {import('./unit.js').UnitFile} UnitFile */
/** @typedef {ReturnType<typeof createInstallation>} Installation */
/** @typedef {'installed' | 'replaced' | 'unchanged'} Outcome */

const MARK = '# Written by "clusterdeck install"; "clusterdeck uninstall" takes it back.\n'
const SYSTEM_FOLDER = '/etc/systemd/system'
/** Of packages and of programs: a unit of the same name in the folder above takes the place of theirs. */
const FOLDERS_OF_OTHERS = Object.freeze(['/usr/lib/systemd/system', '/lib/systemd/system', '/usr/local/lib/systemd/system', '/run/systemd/system'])

/**
 * Where an administrator's units are: systemd.unit(5).
 * @param {import('./unit.js').Scope} scope @param {Record<string, string | undefined>} env
 * @throws {DeckError} not-possible
 */
export function unitFolder (scope, env) {
  if (scope === 'system') return SYSTEM_FOLDER
  const home = homeFolder(env)
  const folder = env.XDG_CONFIG_HOME || (home && path.join(home, '.config'))
  if (!folder) throw new DeckError('not-possible', 'expected XDG_CONFIG_HOME or HOME to say where the units of this user are, received neither, and this user has no home folder')
  return path.join(folder, 'systemd', 'user')
}

/**
 * The units of one service, where systemd looks for them: all of them there, enabled and running, or none.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {Pick<import('./systemctl.js').Systemctl, 'line' | 'logLine' | 'isActive' | 'order'>} parts.systemctl
 * @param {readonly string[]} [parts.ofOthers]
 */
export function createInstallation ({ folder, systemctl, ofOthers = folder === SYSTEM_FOLDER ? FOLDERS_OF_OTHERS : [] }) {
  const placeOf = (/** @type {string} */ file) => path.join(folder, file)

  return {
    placeOf,

    /** @param {UnitFile[]} files @returns {{ text: string, lines: string[] }} what would be written and done, for people */
    plan: (files) => ({
      text: files.map(({ file, text }) => `# ${placeOf(file)}\n${MARK}${text}`).join('\n'),
      lines: stepsOf(files, 'start').map((words) => systemctl.line(...words))
    }),

    /** @param {string} name of the service @returns {Promise<boolean>} */
    isRunning: (name) => systemctl.isActive(`${name}.service`),

    /**
     * @param {string} name @param {UnitFile[]} files @param {{ isForced?: boolean }} [how] `isForced`: whatever is there is replaced
     * @returns {Promise<Outcome>}
     * @throws {DeckError} not-possible: there are others of this name; start-failed; then everything is as it was before
     */
    async install (name, files, { isForced = false } = {}) {
      const before = readUnits(name)
      const wanted = new Map(files.map(({ file, text }) => [file, MARK + text]))
      const isSame = [...before].every(([file, text]) => text === (wanted.get(file) ?? null))
      const isNew = [...before.values()].every((text) => text === null)
      if (!isSame && !isNew && !isForced) throw new DeckError('not-possible', `${folder} has other units of this name already: ${listFound(before)}; --force replaces them, --name gives another name`)
      // The name may be from the package.json of a folder that somebody else can write.
      const other = isNew && !isForced ? ofOthers.flatMap((each) => files.map(({ file }) => path.join(each, file))).find((each) => existsSync(each)) : undefined
      if (other !== undefined) throw new DeckError('not-possible', `${other} is a service of another program, in whose place this one would run: --name gives another name, --force takes its place`)
      const wasRunning = await systemctl.isActive(`${name}.service`)
      try {
        if (!isSame) writeUnits(wanted, before)
        for (const words of stepsOf(files, wasRunning && !isSame ? 'restart' : 'start')) await systemctl.order(...words)
      } catch (error) {
        if (!isSame) await takeBack(files, before, { wasRunning })
        throw isSame ? error : asFailure(error, systemctl.logLine(`${name}.service`))
      }
      return isSame ? 'unchanged' : isNew ? 'installed' : 'replaced'
    },

    /**
     * @param {string} name @returns {{ files: string[], lines: string[] }} what would be removed and done
     */
    planRemoval (name) {
      const files = unitsThere(name)
      return { files: files.map(placeOf), lines: files.length === 0 ? [] : [['disable', '--now', ...files], ['daemon-reload']].map((words) => systemctl.line(...words)) }
    },

    /**
     * @param {string} name @param {{ isForced?: boolean }} [how] `isForced`: also what nobody has installed
     * @returns {Promise<string[]>} the files that are gone; none where there were none
     * @throws {DeckError} not-possible: they are somebody else's; start-failed: it cannot be stopped, and stays
     */
    async uninstall (name, { isForced = false } = {}) {
      const files = unitsThere(name)
      const foreign = files.filter((file) => !readUnit(file)?.startsWith(MARK))
      if (foreign.length > 0 && !isForced) throw new DeckError('not-possible', `${foreign.map(placeOf).join(' and ')}: not written by "clusterdeck install"; --force removes it all the same`)
      if (files.length === 0) return []
      await systemctl.order('disable', '--now', ...files)
      for (const file of files) rmSync(placeOf(file), { force: true })
      await systemctl.order('daemon-reload')
      return files.map(placeOf)
    }
  }

  /** @param {string} name @returns {Map<string, string | null>} what is there; null: nothing */
  function readUnits (name) {
    return new Map([`${name}.service`, `${name}.socket`].map((file) => [file, readUnit(file)]))
  }

  /** @param {string} name */
  function unitsThere (name) {
    return [...readUnits(name)].flatMap(([file, text]) => text === null ? [] : [file])
  }

  /** @param {string} file */
  function readUnit (file) {
    try {
      return readFileSync(placeOf(file), 'utf8')
    } catch (/** @type {any} */ error) {
      if (error.code === 'ENOENT') return null
      throw fileRefusal(error)
    }
  }

  /** @param {Map<string, string>} wanted @param {Map<string, string | null>} before */
  function writeUnits (wanted, before) {
    for (const file of before.keys()) writeUnit(file, wanted.get(file) ?? null)
  }

  /** @param {string} file @param {string | null} text null: it is to be gone */
  function writeUnit (file, text) {
    const place = placeOf(file)
    try {
      if (text === null) return rmSync(place, { force: true })
      makeFolders(folder)
      writeFileSync(`${place}.new`, text, { mode: 0o644 })
      renameSync(`${place}.new`, place)
    } catch (error) {
      rmSync(`${place}.new`, { force: true })
      throw fileRefusal(error)
    }
  }

  /**
   * Each step for itself: one that fails is no reason to leave the others.
   * @param {UnitFile[]} files @param {Map<string, string | null>} before @param {{ wasRunning: boolean }} how
   */
  async function takeBack (files, before, { wasRunning }) {
    const names = files.map(({ file }) => file)
    const gone = names.filter((file) => before.get(file) === null)
    if (gone.length > 0) await tryStep(() => systemctl.order('disable', '--now', ...gone))
    for (const [file, text] of before) await tryStep(() => writeUnit(file, text))
    await tryStep(() => systemctl.order('daemon-reload'))
    await tryStep(() => systemctl.order('reset-failed', ...names))
    if (wasRunning) await tryStep(() => systemctl.order('restart', names[0]))
  }
}

/** @param {UnitFile[]} files @param {'start' | 'restart'} verb @returns {string[][]} sockets first, so that nothing that comes meanwhile is refused */
function stepsOf (files, verb) {
  const names = files.map(({ file }) => file)
  return [['daemon-reload'], ['enable', ...names], [verb, ...names.toReversed()]]
}

/** @param {Map<string, string | null>} units */
function listFound (units) {
  return [...units].flatMap(([file, text]) => text === null ? [] : [file]).join(' and ')
}

/** @param {() => unknown} work */
async function tryStep (work) {
  try {
    await work()
  } catch {
    // What has made it fail says more than what follows from it.
  }
}

/** @param {unknown} error of a file */
function fileRefusal (error) {
  const { code, path: place } = /** @type {any} */ (error)
  return new DeckError('not-possible', `${place}: expected a place for unit files, received ${code}`, { cause: error })
}

/** @param {unknown} error @param {string} logLine what shows why */
function asFailure (error, logLine) {
  if (!(error instanceof DeckError) || error.code !== 'start-failed') return error
  return new DeckError('start-failed', `${error.message}; nothing is installed, everything is as it was before; ${logLine} says more`, { cause: error })
}
