// What is behind the admin port takes 17 MB, so a master loads it when somebody asks for it. In a bundle, where
// system/built-in-bundle.ts takes the place of this file, the code can be dropped again; modules of Node cannot.

export async function loadSite (): Promise<typeof import('./sites.ts')> {
  return await import('./sites.ts')
}

export function dropSite () {}
