// clew's gateway runs before opencode asks it anything.

export const ClewGateway = async ({ client }: any) => {
  const why = await started("opencode")
  if (why) {
    console.error(why)
    setTimeout(() => client.tui.showToast({ body: { message: why, variant: "error" } }).catch(() => {}), 1_000)
  }
  return {}
}
