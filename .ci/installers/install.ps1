# Installs acp-skills-proxy on Windows:
#
#   powershell -c "irm https://github.com/acp-skills/acp-skills-proxy/releases/latest/download/install.ps1 | iex"
#
# The script downloads the archive for this machine, verifies its SHA-256, installs the program for the current user, and adds
# its directory to the user's PATH. It needs no administrator rights. To update, run it again. These environment variables change
# what it does:
#
#   ACP_SKILLS_PROXY_VERSION      the version, for example 0.1.0; the default is the latest
#   ACP_SKILLS_PROXY_INSTALL_DIR  the directory for the program, which is then not added to PATH; the default is
#                                 %LOCALAPPDATA%\Programs\acp-skills-proxy
#   ACP_SKILLS_PROXY_DOWNLOAD     the URL or the path of the directory with the archives, for mirrors

# The whole script is in a function, so that a partial download of it does nothing, and `iex` does not change the session.
function Install-AcpSkillsProxy {
    $ErrorActionPreference = 'Stop'
    # In PowerShell 5, the progress bar makes downloads many times slower.
    $ProgressPreference = 'SilentlyContinue'
    $name = 'acp-skills-proxy'
    $releases = 'https://github.com/acp-skills/acp-skills-proxy/releases'

    # Read the architecture of the machine, which differs from that of the process if PowerShell is emulated.
    $machine = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment').PROCESSOR_ARCHITECTURE
    switch ($machine) {
        'AMD64' { $target = 'x86_64-pc-windows-msvc' }
        'ARM64' { $target = 'aarch64-pc-windows-msvc' }
        default { throw "there is no archive for Windows on $machine; to build from source, run: cargo install $name --locked" }
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
                # PowerShell 5 uses only old versions of TLS by default.
                [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
                Invoke-WebRequest -UseBasicParsing -Uri "$from/$file" -OutFile $place
            }
        }
        $archive = Join-Path $scratch "$base.zip"
        $expected = ((Get-Content -Raw (Join-Path $scratch "$base.zip.sha256")).Trim() -split '\s+')[0]
        $found = (Get-FileHash -Algorithm SHA256 -LiteralPath $archive).Hash
        if ($expected -ne $found) {
            throw "the checksum of the archive is wrong: its SHA-256 is $found, but should be $expected; try again, and if it fails again, do not use the archive"
        }
        Expand-Archive -LiteralPath $archive -DestinationPath $scratch
        New-Item -ItemType Directory -Force -Path $to | Out-Null
        $program = Join-Path $to "$name.exe"
        # A running program cannot be overwritten, but it can be renamed.
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
        # Read PATH without expanding variables, so that entries such as %USERPROFILE%\bin stay the same.
        $key = 'registry::HKEY_CURRENT_USER\Environment'
        $path = (Get-Item -LiteralPath $key).GetValue('Path', '', 'DoNotExpandEnvironmentNames') -split ';' -ne ''
        if (($path -notcontains $to) -and (($env:Path -split ';') -notcontains $to)) {
            Set-ItemProperty -LiteralPath $key -Name Path -Type ExpandString -Value ((@($path) + $to) -join ';')
            # A change of the registry sends no notification, so set and remove a variable, which does.
            $signal = "$name-$([Guid]::NewGuid())"
            [Environment]::SetEnvironmentVariable($signal, 'x', 'User')
            [Environment]::SetEnvironmentVariable($signal, [NullString]::Value, 'User')
            Write-Host "added $to to your PATH; restart programs that need it"
        }
    }
    Write-Host "to try it, run: $name try --help"
}

Install-AcpSkillsProxy
