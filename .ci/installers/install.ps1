# Installs acp-skills-proxy on Windows:
#
#   powershell -c "irm https://github.com/acp-skills/acp-skills-proxy/releases/latest/download/install.ps1 | iex"
#
# It downloads the archive of this machine, checks its SHA-256, and puts the program into a directory of the user, which it
# adds to the user's PATH. It needs no rights and can be run again for a newer version.
#
#   ACP_SKILLS_PROXY_VERSION      for example 0.1.0; otherwise the latest
#   ACP_SKILLS_PROXY_INSTALL_DIR  where the program goes; otherwise %LOCALAPPDATA%\Programs\acp-skills-proxy
#   ACP_SKILLS_PROXY_DOWNLOAD     where the archives are, for mirrors: an address or a directory

# Everything is in a function, so that half a download of this script does nothing, and that `iex` leaves no setting behind.
function Install-AcpSkillsProxy {
    $ErrorActionPreference = 'Stop'
    # The bar makes downloads many times slower in PowerShell 5.
    $ProgressPreference = 'SilentlyContinue'
    $name = 'acp-skills-proxy'
    $releases = 'https://github.com/acp-skills/acp-skills-proxy/releases'

    # What the machine is, also for a PowerShell that runs emulated.
    $machine = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment').PROCESSOR_ARCHITECTURE
    switch ($machine) {
        'AMD64' { $target = 'x86_64-pc-windows-msvc' }
        'ARM64' { $target = 'aarch64-pc-windows-msvc' }
        default { throw "there is no archive for Windows on $machine; with Rust it can be built: cargo install $name --locked" }
    }
    $from = if ($env:ACP_SKILLS_PROXY_DOWNLOAD) { $env:ACP_SKILLS_PROXY_DOWNLOAD }
    elseif ($env:ACP_SKILLS_PROXY_VERSION) { "$releases/download/v$($env:ACP_SKILLS_PROXY_VERSION.TrimStart('v'))" }
    else { "$releases/latest/download" }
    $to = if ($env:ACP_SKILLS_PROXY_INSTALL_DIR) { $env:ACP_SKILLS_PROXY_INSTALL_DIR }
    else { Join-Path $env:LOCALAPPDATA "Programs\$name" }

    $base = "$name-$target"
    $scratch = Join-Path ([IO.Path]::GetTempPath()) "$name-$([Guid]::NewGuid())"
    New-Item -ItemType Directory -Path $scratch | Out-Null
    try {
        foreach ($file in "$base.zip", "$base.zip.sha256") {
            $place = Join-Path $scratch $file
            if (Test-Path -LiteralPath $from -PathType Container) {
                Copy-Item -LiteralPath (Join-Path $from $file) -Destination $place
            } else {
                Write-Host "downloading $from/$file"
                # PowerShell 5 offers old versions of TLS otherwise.
                [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
                Invoke-WebRequest -UseBasicParsing -Uri "$from/$file" -OutFile $place
            }
        }
        $archive = Join-Path $scratch "$base.zip"
        $expected = ((Get-Content -Raw (Join-Path $scratch "$base.zip.sha256")).Trim() -split '\s+')[0]
        $found = (Get-FileHash -Algorithm SHA256 -LiteralPath $archive).Hash
        if ($expected -ne $found) {
            throw "the archive is not what it should be: its SHA-256 is $found, not $expected; try again, and if it stays so, do not use it"
        }
        Expand-Archive -LiteralPath $archive -DestinationPath $scratch
        New-Item -ItemType Directory -Force -Path $to | Out-Null
        $program = Join-Path $to "$name.exe"
        # A program that runs cannot be overwritten, but renamed.
        $old = "$program.old"
        Remove-Item -LiteralPath $old -Force -ErrorAction SilentlyContinue
        if (Test-Path -LiteralPath $program) {
            if (Test-Path -LiteralPath $old) { $old = "$program.$([Guid]::NewGuid()).old" }
            Move-Item -LiteralPath $program -Destination $old
        }
        Move-Item -LiteralPath (Join-Path $scratch "$base\$name.exe") -Destination $program
        Remove-Item -LiteralPath $old -Force -ErrorAction SilentlyContinue
        Write-Host "installed $(& $program --version) as $program"
    } finally {
        Remove-Item -LiteralPath $scratch -Recurse -Force -ErrorAction SilentlyContinue
    }

    if (-not $env:ACP_SKILLS_PROXY_INSTALL_DIR) {
        # As it is written: a directory such as %USERPROFILE%\bin stays what it says.
        $key = 'registry::HKEY_CURRENT_USER\Environment'
        $path = (Get-Item -LiteralPath $key).GetValue('Path', '', 'DoNotExpandEnvironmentNames') -split ';' -ne ''
        if (($path -notcontains $to) -and (($env:Path -split ';') -notcontains $to)) {
            Set-ItemProperty -LiteralPath $key -Name Path -Type ExpandString -Value ((@($path) + $to) -join ';')
            # The registry tells nobody; a variable that comes and goes does.
            $signal = "$name-$([Guid]::NewGuid())"
            [Environment]::SetEnvironmentVariable($signal, 'x', 'User')
            [Environment]::SetEnvironmentVariable($signal, [NullString]::Value, 'User')
            Write-Host "$to was added to your PATH; programs that are started from now on see it"
        }
    }
    Write-Host "see it work: $name try --help"
}

Install-AcpSkillsProxy
