// What is behind the admin port takes 17 MB, so a master loads it when somebody asks for it. In a bundle it can be
// dropped again; this is how it is in development, where modules stay.

export async function loadSite (): Promise<typeof import('./sites.ts')> {
  return await import('./sites.ts')
}

export function dropSite () {}
