import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError, errorCode, toError } from '../errors.ts'
import { homeFolder } from '../system/home-folder.ts'
import { makeFolders } from '../system/make-folders.ts'
import type { Scope, UnitFile } from './unit.ts'
import type { Systemctl } from './systemctl.ts'

type Outcome = 'installed' | 'replaced' | 'unchanged'

const MARK = '# Written by "clusterdeck install"; "clusterdeck uninstall" takes it back.\n'
const SYSTEM_FOLDER = '/etc/systemd/system'
/** Of packages and of programs: a unit of the same name in the folder above takes the place of theirs. */
const FOLDERS_OF_OTHERS = Object.freeze(['/usr/lib/systemd/system', '/lib/systemd/system',
  '/usr/local/lib/systemd/system', '/run/systemd/system'])

/**
 * Where an administrator's units are: systemd.unit(5).
 * @throws {DeckError} not-possible
 */
export function unitFolder (scope: Scope, env: Record<string, string | undefined>) {
  if (scope === 'system') return SYSTEM_FOLDER
  const home = homeFolder(env)
  const folder = env.XDG_CONFIG_HOME || (home && path.join(home, '.config'))
  if (!folder)
    throw new DeckError('not-possible',
      'expected XDG_CONFIG_HOME or HOME to say where the units of this user are, received neither, and this user has no home folder')
  return path.join(folder, 'systemd', 'user')
}

/** The units of one service, where systemd looks for them: all of them there, enabled and running, or none. */
export function createInstallation (
  { folder, systemctl, ofOthers = folder === SYSTEM_FOLDER ? FOLDERS_OF_OTHERS : [] }: { folder: string,
    systemctl: Pick<Systemctl, 'line' | 'logLine' | 'isActive' | 'order'>, ofOthers?: readonly string[] }
) {
  const placeOf = (file: string) => path.join(folder, file)

  return {
    placeOf,

    /** @returns what would be written and done, for people */
    plan: (files: UnitFile[]): { text: string, lines: string[] } => ({
      text: files.map(({ file, text }) => `# ${placeOf(file)}\n${MARK}${text}`).join('\n'),
      lines: stepsOf(files, 'start').map((words) => systemctl.line(...words))
    }),

    /** `name`: of the service */
    isRunning: (name: string): Promise<boolean> => systemctl.isActive(`${name}.service`),

    /**
     * @param how `isForced`: whatever is there is replaced
     * @throws {DeckError} not-possible: there are others of this name; start-failed; then everything is as it was
     * before
     */
    async install (name: string, files: UnitFile[],
      { isForced = false }: { isForced?: boolean } = {}): Promise<Outcome>
    {
      const before = readUnits(name)
      const wanted = new Map(files.map(({ file, text }) => [file, MARK + text]))
      const isSame = [...before].every(([file, text]) => text === (wanted.get(file) ?? null))
      const isNew = [...before.values()].every((text) => text === null)
      if (!isSame && !isNew && !isForced)
        throw new DeckError('not-possible',
          `${folder} has other units of this name already: ${
            listFound(before)
          }; --force replaces them, --name gives another name`)
      // The name may be from the package.json of a folder that somebody else can write.
      const other = isNew && !isForced
        ? ofOthers.flatMap((each) => files.map(({ file }) => path.join(each, file))).find((each) => existsSync(each))
        : undefined
      if (other !== undefined)
        throw new DeckError('not-possible',
          `${other} is a service of another program, in whose place this one would run: --name gives another name, --force takes its place`)
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

    /** @returns what would be removed and done */
    planRemoval (name: string): { files: string[], lines: string[] } {
      const files = unitsThere(name)
      return { files: files.map(placeOf),
        lines: files.length === 0
          ? []
          : [['disable', '--now', ...files], ['daemon-reload']].map((words) => systemctl.line(...words)) }
    },

    /**
     * `isForced`: also what nobody has installed. Returns the files that are gone; none where there were none.
     * @throws {DeckError} not-possible: they are somebody else's; start-failed: it cannot be stopped, and stays
     */
    async uninstall (name: string, { isForced = false }: { isForced?: boolean } = {}): Promise<string[]> {
      const files = unitsThere(name)
      const foreign = files.filter((file) => !readUnit(file)?.startsWith(MARK))
      if (foreign.length > 0 && !isForced)
        throw new DeckError('not-possible',
          `${
            foreign.map(placeOf).join(' and ')
          }: not written by "clusterdeck install"; --force removes it all the same`)
      if (files.length === 0) return []
      await systemctl.order('disable', '--now', ...files)
      for (const file of files) rmSync(placeOf(file), { force: true })
      await systemctl.order('daemon-reload')
      return files.map(placeOf)
    }
  }

  /** @returns what is there; null: nothing */
  function readUnits (name: string): Map<string, string | null> {
    return new Map([`${name}.service`, `${name}.socket`].map((file) => [file, readUnit(file)]))
  }

  function unitsThere (name: string) {
    return [...readUnits(name)].flatMap(([file, text]) => text === null ? [] : [file])
  }

  function readUnit (file: string) {
    try {
      return readFileSync(placeOf(file), 'utf8')
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw fileRefusal(error)
    }
  }

  function writeUnits (wanted: Map<string, string>, before: Map<string, string | null>) {
    for (const file of before.keys()) writeUnit(file, wanted.get(file) ?? null)
  }

  /** `text`: null: it is to be gone */
  function writeUnit (file: string, text: string | null) {
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

  /** Each step for itself: one that fails is no reason to leave the others. */
  async function takeBack (files: UnitFile[], before: Map<string, string | null>,
    { wasRunning }: { wasRunning: boolean })
  {
    const names = files.map(({ file }) => file)
    const gone = names.filter((file) => before.get(file) === null)
    if (gone.length > 0) await tryStep(() => systemctl.order('disable', '--now', ...gone))
    for (const [file, text] of before) await tryStep(() => writeUnit(file, text))
    await tryStep(() => systemctl.order('daemon-reload'))
    await tryStep(() => systemctl.order('reset-failed', ...names))
    if (wasRunning) await tryStep(() => systemctl.order('restart', names[0]))
  }
}

/** @returns sockets first, so that nothing that comes meanwhile is refused */
function stepsOf (files: UnitFile[], verb: 'start' | 'restart'): string[][] {
  const names = files.map(({ file }) => file)
  return [['daemon-reload'], ['enable', ...names], [verb, ...names.toReversed()]]
}

function listFound (units: Map<string, string | null>) {
  return [...units].flatMap(([file, text]) => text === null ? [] : [file]).join(' and ')
}

async function tryStep (work: () => unknown) {
  try {
    await work()
  } catch {
    // What has made it fail says more than what follows from it.
  }
}

/** `error`: of a file */
function fileRefusal (error: unknown) {
  const { code, path: place } = toError(error)
  return new DeckError('not-possible', `${place}: expected a place for unit files, received ${code}`, { cause: error })
}

/** `logLine`: what shows why */
function asFailure (error: unknown, logLine: string) {
  if (!(error instanceof DeckError) || error.code !== 'start-failed') return error
  return new DeckError('start-failed',
    `${error.message}; nothing is installed, everything is as it was before; ${logLine} says more`, { cause: error })
}
